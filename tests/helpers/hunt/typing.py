# SPDX-License-Identifier: Apache-2.0
"""Models of one node each, with concrete inputs, and the ways in which the types of their inputs may be stated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper, numpy_helper

STATIC, SYMBOLS, DIMS, RANKS, MIXED = "static", "symbols", "dims", "ranks", "mixed"
TYPINGS = (STATIC, SYMBOLS, DIMS, RANKS, MIXED)


@dataclass(frozen=True)
class Single:
    """A node of ai.onnx at an opset, with values for its inputs. Those in `constant` are initializers."""

    node: NodeProto
    opset: int
    feeds: Mapping[str, np.ndarray]
    constant: frozenset[str] = frozenset()

    @property
    def operator(self) -> str:
        """The operator, with the version that is in force."""
        return f"{self.node.op_type}-{onnx.defs.get_schema(self.node.op_type, self.opset).since_version}"


@dataclass
class Typed:
    """A model whose inputs are typed in some way, and what each symbol stands for."""

    model: ModelProto
    sizes: dict[str, int] = field(default_factory=dict)


def stated(single: Single, typing: str, chance: random.Random) -> Typed:
    """Returns the node as a model, the types of its inputs stated in one of the ways."""
    typed = Typed(ModelProto(ir_version=8))
    model = typed.model
    model.opset_import.add(domain="", version=single.opset)
    graph = model.graph
    graph.name = "g"
    names: dict[int, str] = {}
    for name in dict.fromkeys(name for name in single.node.input if name):
        array = single.feeds[name]
        if name in single.constant:
            graph.initializer.append(numpy_helper.from_array(array, name))
            continue
        graph.input.append(ValueInfoProto(name=name, type=_type(array, typing, names, typed.sizes, chance)))
    graph.node.append(single.node)
    for name in single.node.output:
        if name:
            graph.output.append(ValueInfoProto(name=name))
    return typed


def _type(
    array: np.ndarray, typing: str, names: dict[int, str], sizes: dict[str, int], chance: random.Random
) -> TypeProto:
    kind = TypeProto()
    kind.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    if typing == RANKS or (typing == MIXED and chance.random() < 0.2):
        return kind
    kind.tensor_type.shape.SetInParent()
    for size in array.shape:
        way = typing if typing != MIXED else chance.choice((STATIC, SYMBOLS, DIMS))
        dim = kind.tensor_type.shape.dim.add()
        if way == STATIC:
            dim.dim_value = size
        elif way == SYMBOLS:  # equal sizes have mostly one name
            name = names.setdefault(size, f"N{len(sizes)}")
            if chance.random() < 0.3:
                name = f"N{len(sizes)}"
            sizes[name] = size
            dim.dim_param = name
    return kind


def singles(model: ModelProto, feeds: Mapping[str, Any]) -> Iterator[Single]:
    """Returns the node of a model that has but one besides constants, at the opset of the model."""
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        value = next((a.t for a in node.attribute if a.name == "value"), None)
        if node.op_type == "Constant" and value is not None:
            known[node.output[0]] = numpy_helper.to_array(value)
        else:
            nodes.append(node)
    if len(nodes) != 1 or nodes[0].domain not in ("", "ai.onnx") or model.functions:
        return
    arrays = {**known, **feeds}
    if not all(isinstance(arrays.get(name), np.ndarray) for name in nodes[0].input if name):
        return
    opset = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), 0)
    node = NodeProto()
    node.CopyFrom(nodes[0])
    node.domain = ""
    mine = {name: arrays[name] for name in node.input if name}
    if any(array.dtype.kind not in "biufU O" for array in mine.values()):
        return
    yield Single(node, opset, mine, frozenset(name for name in mine if name in known))


def varied(single: Single, schema: onnx.defs.OpSchema) -> Iterator[Single]:
    """The single node, and others like it: an attribute or an optional input less, small integers constant or not."""
    yield single
    small = frozenset(
        name for name, array in single.feeds.items() if array.dtype.kind == "i" and array.size <= 16 and array.ndim < 2
    )
    for constant in {small, frozenset[str]()} - {single.constant}:
        yield Single(single.node, single.opset, single.feeds, constant)
    for index, attribute in enumerate(single.node.attribute):
        formal = schema.attributes.get(attribute.name)
        if formal is not None and not formal.required:
            node = NodeProto()
            node.CopyFrom(single.node)
            del node.attribute[index]
            yield Single(node, single.opset, single.feeds, single.constant)
            if attribute.type == onnx.AttributeProto.INT and attribute.i in (0, 1):
                node = NodeProto()
                node.CopyFrom(single.node)
                node.attribute[index].i = 1 - attribute.i
                yield Single(node, single.opset, single.feeds, single.constant)
    for name, formal in schema.attributes.items():
        default = formal.default_value
        given = {attribute.name for attribute in single.node.attribute}
        if name not in given and default.type == onnx.AttributeProto.INT and default.i in (0, 1):
            node = NodeProto()
            node.CopyFrom(single.node)
            node.attribute.append(helper.make_attribute(name, 1 - default.i))
            yield Single(node, single.opset, single.feeds, single.constant)
    formals = list(schema.inputs)
    for index in range(1, len(single.node.input)):
        if index < len(formals) and formals[index].option == onnx.defs.OpSchema.FormalParameterOption.Optional:
            node = NodeProto()
            node.CopyFrom(single.node)
            node.input[index] = ""
            while node.input and not node.input[-1]:
                node.input.pop()
            kept = {name: single.feeds[name] for name in node.input if name}
            yield Single(node, single.opset, kept, single.constant & kept.keys())


def resized(single: Single, chance: random.Random) -> Single:
    """The same with one axis of one input of size 1, 0, or one more; most will not run, which costs nothing."""
    names = [name for name, array in single.feeds.items() if array.size and array.ndim > (array.dtype.kind in "iu")]
    if not names or any(attribute.HasField("g") for attribute in single.node.attribute):
        return single  # a body states sizes, and axes must not be named twice
    name = chance.choice(names)
    array = single.feeds[name]
    axis = chance.randrange(array.ndim)
    size = chance.choice((0, 1, 1, array.shape[axis] + 1, array.shape[axis] + 2))
    index = [at % array.shape[axis] for at in range(size)]
    return Single(single.node, single.opset, {**single.feeds, name: np.take(array, index, axis=axis)}, single.constant)


def opsets_of(single: Single) -> Sequence[int]:
    """Returns an opset for each version of the operator."""
    found = []
    version = onnx.defs.onnx_opset_version()
    while version:
        try:
            schema = onnx.defs.get_schema(single.node.op_type, version)
        except onnx.defs.SchemaError:
            break
        found.append(version)
        version = schema.since_version - 1
    return found


def fits(node: NodeProto, schema: onnx.defs.OpSchema) -> bool:
    """Tells whether a node could be of that version."""
    return (
        all(attribute.name in schema.attributes for attribute in node.attribute)
        and schema.min_input <= len(node.input) <= schema.max_input
        and schema.min_output <= len(node.output) <= schema.max_output
        and {name for name, a in schema.attributes.items() if a.required} <= {a.name for a in node.attribute}
        and not schema.deprecated
    )


def tensor(array: np.ndarray, name: str) -> TensorProto:
    """Returns an array as a message."""
    return numpy_helper.from_array(array, name)
