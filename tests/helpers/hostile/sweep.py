# SPDX-License-Identifier: Apache-2.0
"""Makes a model of one node for every operator at every opset, of whatever its schema lets through: mostly nonsense."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.defs import OpSchema

from onnx_convert.validation import words

if TYPE_CHECKING:
    from onnx import ModelProto

SHAPES = ([2, 3, 4], [4], [], [1, 4, 4, 4], [2, 3], [1], [3, 3], [2, 2, 4, 4, 2], [0, 3], ["N", 3, "M"], None)
INTEGERS = (0, 1, 2, 3, -1, 4, -2, 8)
DTYPES = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(int64)": TensorProto.INT64,
    "tensor(int32)": TensorProto.INT32,
    "tensor(double)": TensorProto.DOUBLE,
    "tensor(float16)": TensorProto.FLOAT16,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(string)": TensorProto.STRING,
    "tensor(uint8)": TensorProto.UINT8,
    "tensor(int8)": TensorProto.INT8,
    "tensor(bfloat16)": TensorProto.BFLOAT16,
    "tensor(float8e4m3fn)": TensorProto.FLOAT8E4M3FN,
    "tensor(int4)": TensorProto.INT4,
}


@lru_cache(maxsize=1)
def pairs() -> tuple[tuple[OpSchema, int], ...]:
    """Returns every operator of ONNX with every opset that it is in, experimental and removed ones left out."""
    versions: dict[tuple[str, str], list[OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in ("", "ai.onnx.ml"):
            versions.setdefault((schema.domain, schema.name), []).append(schema)
    newest = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": 5}
    found = []
    for (domain, _), listed in sorted(versions.items()):
        listed.sort(key=lambda schema: schema.since_version)
        ends = [schema.since_version for schema in listed[1:]] + [newest[domain] + 1]
        for schema, end in zip(listed, ends, strict=True):
            if not schema.deprecated:
                found += [(schema, opset) for opset in range(schema.since_version, end)]
    return tuple(found)


def model(number: int, luck: random.Random) -> tuple[str, ModelProto]:
    """Returns the name and a model of the pair of that number, which go round."""
    schema, opset = pairs()[number % len(pairs())]
    chosen: dict[str, str] = {}
    graph = onnx.GraphProto(name="g")
    names = []
    for formal in schema.inputs:
        times = luck.randint(1, 3) if formal.option == OpSchema.FormalParameterOption.Variadic else 1
        optional = formal.option == OpSchema.FormalParameterOption.Optional
        for _ in range(times):
            if optional and luck.random() < 0.5:
                names.append("")
                continue
            names.append(f"x{len(names)}")
            _add(graph, names[-1], _type_of(schema, formal, chosen, luck), luck)
    outputs = [f"y{index}" for index in range(luck.randint(max(schema.min_output, 1), min(schema.max_output, 4) or 1))]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain)
    for name, attribute in schema.attributes.items():
        if attribute.required or luck.random() < 0.35:
            value = _value(schema.name, name, attribute.type.name, luck)
            if value is not None:
                node.attribute.append(helper.make_attribute(name, value))
    graph.node.append(node)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs[:1])
    dtype = DTYPES.get(_type_of(schema, schema.outputs[0], chosen, luck))
    if dtype is not None:
        graph.output[0].type.tensor_type.elem_type = dtype
    imports = [helper.make_opsetid(schema.domain, opset)]
    if schema.domain:
        imports.append(helper.make_opsetid("", luck.randint(8, 21)))
    ir = luck.choice((3, 8, 10)) if opset < 9 else luck.choice((8, 10, 12))
    made = onnx.ModelProto(ir_version=ir, graph=graph, opset_import=imports)
    return f"{schema.domain}{schema.name}@{opset}", made


def _type_of(schema: OpSchema, formal: Any, chosen: dict[str, str], luck: random.Random) -> str:
    if formal.type_str not in chosen or not formal.is_homogeneous:
        allowed = next(
            (one.allowed_type_strs for one in schema.type_constraints if one.type_param_str == formal.type_str), None
        )
        listed = list(allowed) if allowed is not None else [formal.type_str]
        usual = [one for one in listed if one in ("tensor(float)", "tensor(int64)")]
        chosen[formal.type_str] = luck.choice(usual if usual and luck.random() < 0.6 else listed)
    return chosen[formal.type_str]


def _add(graph: onnx.GraphProto, name: str, kind: str, luck: random.Random) -> None:
    """Adds a graph input, or an initializer, of a type."""
    dtype = DTYPES.get(kind)
    shape = luck.choice(SHAPES)
    if kind == "tensor(int64)" and luck.random() < 0.7:
        shape = luck.choice(([1], [2], [3], [4], [], [0], [8]))
        if luck.random() < 0.7:
            array = np.array([luck.choice(INTEGERS) for _ in range(int(np.prod(shape)))], dtype=np.int64)
            graph.initializer.append(onnx.numpy_helper.from_array(array.reshape(shape), name))
            return
    value = graph.input.add(name=name)
    if dtype is not None:
        value.CopyFrom(helper.make_tensor_value_info(name, dtype, shape))
    elif kind.startswith("seq(") and (inner := DTYPES.get(kind[4:-1])):
        value.CopyFrom(helper.make_tensor_sequence_value_info(name, inner, shape))
    elif kind.startswith("optional(tensor") and (inner := DTYPES.get(kind[9:-1])):
        value.type.optional_type.elem_type.CopyFrom(helper.make_tensor_type_proto(inner, shape))


def _value(operator: str, name: str, kind: str, luck: random.Random) -> Any:
    listed = sorted(words.WORDS.get((operator, name), (b"", b"x")))
    if name in words.DTYPES:
        return luck.choice((1, 7, 6, 10, 11, 9, 8))
    if kind == "GRAPH":
        return _body(luck)
    if kind == "TENSOR":
        return onnx.numpy_helper.from_array(
            np.ones(luck.choice(([1], [2, 2], [])), dtype=luck.choice(("f4", "i8"))), ""
        )
    values = {
        "INT": luck.choice(INTEGERS),
        "FLOAT": luck.choice((0.0, 1.0, -1.0, 0.5)),
        "STRING": luck.choice(listed),
        "INTS": [luck.choice(INTEGERS) for _ in range(luck.randint(1, 4))],
        "FLOATS": [luck.choice((0.0, 1.0, -2.5)) for _ in range(luck.randint(1, 4))],
        "STRINGS": [luck.choice(listed) for _ in range(luck.randint(1, 4))],
    }
    return values.get(kind)


def _body(luck: random.Random) -> onnx.GraphProto:
    inputs, outputs = luck.randint(0, 3), luck.randint(1, 3)
    body = onnx.GraphProto(name="body")
    body.input.extend(onnx.ValueInfoProto(name=f"b{index}") for index in range(inputs))
    for index in range(outputs):
        body.node.append(helper.make_node("Identity", [f"b{index % inputs}" if inputs else "x0"], [f"o{index}"]))
        body.output.append(onnx.ValueInfoProto(name=f"o{index}"))
    return body
