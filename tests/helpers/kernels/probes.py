# SPDX-License-Identifier: Apache-2.0
"""Makes a model of one node for each version of each operator and each of its dtypes: to be loaded by a runtime, which
says whether it has a kernel.

A runtime lists its kernels, and runs more than it lists: nodes whose operator has a function body, and float16 between
Casts. So each combination is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
import onnx.defs
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper
from onnx.defs import OpSchema

from onnx_convert.spec import opsets
from onnx_convert.spec.types import dtype_number

IR: Final = 8
LOWEST: Final = 7
"""The lowest opset that is asked for; runtimes load older ones, but what is converted for them is not older."""

SKIPPED: Final = frozenset(("Constant", "Gradient", "Adagrad", "Adam", "Momentum"))
"""Constant becomes an initializer; nobody runs training."""

ATTRIBUTES: Final[dict[str, Any]] = {
    "num_groups": 1, "kv_num_heads": 1, "q_num_heads": 1, "axis": 0, "kernel_shape": [1, 1], "paddings": [0, 0],
    "pads": [0, 0, 0, 0], "direction": "LEFT", "ends": [1], "starts": [0], "consumed_inputs": [0, 0, 0, 1, 1],
    "blocksize": 1, "height_scale": 1.0, "width_scale": 1.0, "scales": [1.0, 1.0, 1.0, 1.0], "k": 1, "size": 1,
    "axes": [0], "pooled_shape": [1, 1], "shape": [1], "equation": "i->i", "num_scan_inputs": 1,
    "coefficients": [1.0],
}  # fmt: skip
OWN: Final[dict[str, dict[str, Any]]] = {
    "CategoryMapper": {"cats_int64s": [0], "cats_strings": ["a"]},
    "FeatureVectorizer": {"inputdimensions": [1]},
    "GRU": {"hidden_size": 1},
    "LSTM": {"hidden_size": 1},
    "LinearAttention": {"update_rule": "linear"},
    "LinearClassifier": {"classlabels_ints": [0], "intercepts": [0.0]},
    "LinearRegressor": {"coefficients": [1.0], "intercepts": [0.0]},
    "Normalizer": {"norm": "L2"},
    "OneHotEncoder": {"cats_int64s": [0]},
    "Pad": {},
    "RNN": {"hidden_size": 1},
    "RegexFullMatch": {"pattern": "a"},
    "SVMClassifier": {
        "classlabels_ints": [0, 1],
        "vectors_per_class": [1, 1],
        "support_vectors": [0.0, 1.0],
        "coefficients": [1.0, 1.0],
        "rho": [0.0],
        "kernel_params": [1.0, 0.0, 1.0],
    },
    "SVMRegressor": {
        "support_vectors": [0.0],
        "coefficients": [1.0],
        "rho": [0.0],
        "n_supports": 1,
        "kernel_params": [1.0, 0.0, 1.0],
    },
    "Scaler": {"offset": [0.0], "scale": [1.0]},
    "TfIdfVectorizer": {
        "mode": "TF",
        "ngram_indexes": [0],
        "ngram_counts": [0],
        "max_skip_count": 0,
        "min_gram_length": 1,
        "max_gram_length": 1,
        "pool_int64s": [1],
    },
    "TreeEnsemble": {
        "tree_roots": [0],
        "leaf_targetids": [0, 0],
        "n_targets": 1,
        "nodes_falsenodeids": [1],
        "nodes_trueleafs": [1],
        "nodes_featureids": [0],
        "nodes_falseleafs": [1],
        "nodes_truenodeids": [0],
        "nodes_modes": numpy_helper.from_array(np.array([0], np.uint8)),
    },
    "TreeEnsembleClassifier": {
        "class_ids": [0],
        "class_nodeids": [0],
        "class_treeids": [0],
        "class_weights": [1.0],
        "classlabels_int64s": [0, 1],
        "nodes_falsenodeids": [0],
        "nodes_featureids": [0],
        "nodes_modes": ["LEAF"],
        "nodes_nodeids": [0],
        "nodes_treeids": [0],
        "nodes_truenodeids": [0],
        "nodes_values": [0.0],
    },
    "TreeEnsembleRegressor": {
        "n_targets": 1,
        "nodes_falsenodeids": [0],
        "nodes_featureids": [0],
        "nodes_modes": ["LEAF"],
        "nodes_nodeids": [0],
        "nodes_treeids": [0],
        "nodes_truenodeids": [0],
        "nodes_values": [0.0],
        "target_ids": [0],
        "target_nodeids": [0],
        "target_treeids": [0],
        "target_weights": [1.0],
    },
    "Scan": {"num_scan_inputs": 1},
    "Upsample": {"mode": "nearest"},
    "ZipMap": {"classlabels_int64s": [0]},
}
ALL_INPUTS: Final[dict[str, int]] = {"Loop": 3, "Resize": 3, "Pad": 2, "Clip": 1, "Upsample": 2, "CenterCropPad": 2}
"""How many inputs a node has that schemas would not tell."""


OUTPUT_DTYPES: Final = {
    "Bernoulli": ("dtype",),
    "BlackmanWindow": ("output_datatype",),
    "EyeLike": ("dtype",),
    "HammingWindow": ("output_datatype",),
    "HannWindow": ("output_datatype",),
    "MelWeightMatrix": ("output_datatype",),
    "Multinomial": ("dtype",),
    "QuantizeLinear": ("output_dtype",),
    "RandomNormal": ("dtype",),
    "RandomNormalLike": ("dtype",),
    "RandomUniform": ("dtype",),
    "RandomUniformLike": ("dtype",),
    "SequenceEmpty": ("dtype",),
}
"""Attributes that hold the dtype of the output."""

SHAPES: Final = {"CausalConvWithState": ((1, 1, 4), (1, 1, 2))}
"""Operators whose function body needs the shapes of the inputs."""


class Probe(NamedTuple):
    """A model of one node: the version of its operator, the first and the last opset of ai.onnx at which it stands, its
    dtypes by type variable, and the message, whose last byte is the opset.

    A function body may suit one opset and not the next, so operators that have one are asked for at `every` opset.
    """

    domain: str
    operator: str
    version: int
    first: int
    last: int
    every: bool
    types: tuple[tuple[str, str], ...]
    message: bytes


def probes() -> Iterator[Probe]:
    """Yields the models of one node of all versions of all operators that the installed onnx knows."""
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version)):
        if schema.domain in ("", "ai.onnx.ml") and not schema.deprecated and schema.name not in SKIPPED:
            yield from _of(schema)


def inputs_of(schema: OpSchema) -> list[OpSchema.FormalParameter | None]:
    """Returns the inputs of a node that is asked for, None for one left out: those that it must have, and optional ones
    that alone have their type variable."""
    count = max(schema.min_input, ALL_INPUTS.get(schema.name, 0))
    made = {formal.type_str for formal in schema.outputs}
    found: list[OpSchema.FormalParameter | None] = []
    for index, formal in enumerate(schema.inputs[: schema.max_input]):
        wanted = index < count or (formal.type_str not in made and schema.name != "SequenceMap")
        found.append(formal if wanted else None)
        if wanted:
            made.add(formal.type_str)
    while found and found[-1] is None:
        found.pop()
    return found


def outputs_of(schema: OpSchema) -> list[OpSchema.FormalParameter]:
    """Returns the outputs of a node that is asked for."""
    return [*schema.outputs[: max(schema.min_output, 1)]]


def variables(schema: OpSchema) -> dict[str, list[str]]:
    """Returns the type variables of what a node has that is asked for, with the types that each takes."""
    used = {formal.type_str for formal in (*inputs_of(schema), *outputs_of(schema)) if formal is not None}
    return {c.type_param_str: sorted(c.allowed_type_strs) for c in schema.type_constraints if c.type_param_str in used}


def until(schema: OpSchema) -> int:
    """Returns the last opset at which an operator has this version."""
    later = [version for version in opsets.history(schema.name, schema.domain) if version > schema.since_version]
    return later[0] - 1 if later else opsets.latest(schema.domain)


def combinations(types: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Yields the dtypes that are asked for."""
    yield from (dict(zip(types, chosen, strict=True)) for chosen in product(*types.values()))


def _of(schema: OpSchema) -> Iterator[Probe]:
    last = until(schema)
    first = max(schema.since_version, LOWEST)
    if not schema.domain and last < LOWEST:
        return
    every = schema.has_function or schema.has_context_dependent_function
    for types in combinations(variables(schema)):
        place = schema.domain, schema.name, schema.since_version
        yield Probe(*place, first, last, every, tuple(types.items()), _model(schema, types).SerializeToString())


def _model(schema: OpSchema, types: Mapping[str, str]) -> ModelProto:
    node = NodeProto(op_type=schema.name, domain=schema.domain)
    graph = GraphProto(name="g")
    for index, formal in enumerate(inputs_of(schema)):
        node.input.append(f"i{index}" if formal is not None else "")
        if formal is not None:
            graph.input.add(name=f"i{index}").type.CopyFrom(kind_of(types.get(formal.type_str, formal.type_str)))
    for shape, value in zip(SHAPES.get(schema.name, ()), graph.input, strict=False):
        for size in shape:
            value.type.tensor_type.shape.dim.add(dim_value=size)
    for index, formal in enumerate(outputs_of(schema)):
        node.output.append(f"o{index}")
        graph.output.add(name=f"o{index}").type.CopyFrom(kind_of(types.get(formal.type_str, formal.type_str)))
    _set_attributes(node, schema, types)
    graph.node.append(node)
    model = ModelProto(ir_version=IR, graph=graph)
    if schema.domain:
        model.opset_import.add(domain=schema.domain, version=schema.since_version)
    model.opset_import.add(domain="", version=max(schema.since_version, LOWEST))
    return model


def _set_attributes(node: NodeProto, schema: OpSchema, types: Mapping[str, str]) -> None:
    """Adds the attributes that the node must have, and those that say what dtype comes out."""
    for name, attribute in schema.attributes.items():
        value = OWN.get(schema.name, {}).get(name, ATTRIBUTES.get(name) if attribute.required else None)
        if name in ("nodes_splits", "leaf_weights"):
            value = _constant(types["T"], 2 if name == "leaf_weights" else 1)
        elif name == "to":
            value = dtype_number(types["T2"][7:-1])
        elif attribute.type == OpSchema.AttrType.GRAPH:
            value = _body(schema, types)
        elif name in OUTPUT_DTYPES.get(schema.name, ()) and schema.outputs[0].type_str in types:
            value = dtype_number(re.sub(r".*\((\w+)\).*", r"\1", types[schema.outputs[0].type_str]))
        if value is not None:
            node.attribute.append(helper.make_attribute(name, value))
    if schema.name == "ConstantOfShape":
        node.attribute.append(helper.make_attribute("value", _constant(types["T2"], 1)))
    elif schema.name == "DictVectorizer":
        key = "int64_vocabulary" if types["T1"].startswith("map(int64") else "string_vocabulary"
        node.attribute.append(helper.make_attribute(key, [1] if key == "int64_vocabulary" else ["a"]))
    elif schema.name == "LabelEncoder" and schema.since_version > 1:
        _label_encoder(node, types)
    elif schema.name == "LabelEncoder":
        node.attribute.append(helper.make_attribute("classes_strings", ["a"]))


def _label_encoder(node: NodeProto, types: Mapping[str, str]) -> None:
    kinds = {"string": "strings", "int64": "int64s", "float": "floats"}
    values: dict[str, list[Any]] = {"string": ["a"], "int64": [1], "float": [1.0]}
    for name, variable in (("keys", "T1"), ("values", "T2")):
        kind = types[variable][7:-1]
        if kind in kinds:
            node.attribute.append(helper.make_attribute(f"{name}_{kinds[kind]}", values[kind]))
        else:
            node.attribute.append(helper.make_attribute(f"{name}_tensor", _constant(types[variable], 1)))


def _constant(type_str: str, count: int) -> TensorProto:
    """Returns a tensor of zeros: all dtypes are zero where their bytes are."""
    dtype = dtype_number(type_str[7:-1])
    tensor = TensorProto(data_type=dtype, dims=[count])
    if dtype == TensorProto.STRING:
        tensor.string_data.extend([b""] * count)
    else:
        tensor.raw_data = bytes(count * helper.tensor_dtype_to_np_dtype(dtype).itemsize)
    return tensor


def _body(schema: OpSchema, types: Mapping[str, str]) -> GraphProto:
    """Returns the body of a node that gives back what it is given; that of If makes something of the type."""
    graph = GraphProto(name="body")
    if schema.name == "If":
        _make(graph, types["V"])
        graph.output.add(name="b").type.CopyFrom(kind_of(types["V"]))
        return graph
    kind = types["S"][4:-1] if schema.name == "SequenceMap" else types["V"]
    given = {"b": kind} if schema.name != "Loop" else {"i": "tensor(int64)", "c": "tensor(bool)", "b": kind}
    for name, text in given.items():
        graph.input.add(name=name).type.CopyFrom(kind_of(text))
        if name != "i":
            graph.node.add(op_type="Identity", input=[name], output=[f"{name}_out"])
            graph.output.add(name=f"{name}_out").type.CopyFrom(kind_of(text))
    return graph


def _make(graph: GraphProto, kind: str) -> None:
    """Adds what makes the value `b` of a type to a graph."""
    if kind.startswith("tensor("):
        graph.initializer.append(_constant(kind, 1))
        graph.initializer[0].name = "b"
    elif kind.startswith("seq("):
        graph.node.add(op_type="SequenceEmpty", output=["b"]).attribute.append(
            helper.make_attribute("dtype", dtype_number(kind[11:-2]))
        )
    else:
        graph.node.add(op_type="Optional", output=["b"]).attribute.append(
            AttributeProto(name="type", type=AttributeProto.TYPE_PROTO, tp=kind_of(kind[9:-1]))
        )


def kind_of(text: str) -> TypeProto:
    """Returns the type that schemas spell like this: "seq(tensor(int64))", "map(string,tensor(float))"."""
    kind = TypeProto()
    outer, inner = text[: text.index("(")], text[text.index("(") + 1 : -1]
    if outer == "tensor":
        kind.tensor_type.elem_type = dtype_number(inner)
    elif outer == "sparse_tensor":
        kind.sparse_tensor_type.elem_type = dtype_number(inner)
    elif outer == "seq":
        kind.sequence_type.elem_type.CopyFrom(kind_of(inner))
    elif outer == "optional":
        kind.optional_type.elem_type.CopyFrom(kind_of(inner))
    else:
        key, value = inner.split(",", 1)
        value = value.strip()
        kind.map_type.key_type = dtype_number(key.strip())
        kind.map_type.value_type.CopyFrom(kind_of(value if "(" in value else f"tensor({value})"))
    return kind
