# SPDX-License-Identifier: Apache-2.0
"""The oracle: runs a model, compares two sets of results, makes inputs, and tells whether a model is legal.

ONNX Runtime, with all of its optimisations off, has the first word. What it does not run (operators of the opsets
below 7, some dtypes, opsets newer than itself) goes to onnx's reference evaluator, with the meaning of the old
operators put right. Those that run and compare are the ones of `--verify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from onnx_convert.verification.comparison import TOLERANCE, compare
from onnx_convert.verification.evaluators import (
    ONNXRUNTIME,
    REFERENCE,
    Evaluation,
    evaluate,
    one_spelling,
    run_reference,
)
from onnx_convert.verification.values import random_array

Feeds = Mapping[str, Any]

__all__ = [
    "ONNXRUNTIME",
    "REFERENCE",
    "TOLERANCE",
    "Evaluation",
    "Feeds",
    "all_nodes",
    "compare",
    "evaluate",
    "feeds_for",
    "is_inferable",
    "nested",
    "nodes_of",
    "one_spelling",
    "opset_of",
    "random_array",
    "run",
    "run_reference",
    "scopes",
    "validate",
]


def run(model: ModelProto, feeds: Feeds) -> list[Any]:
    """Returns the outputs of a model, in graph order."""
    return evaluate(model, feeds).values


# ---- inputs


def feeds_for(model: ModelProto, seed: int = 0, dims: Mapping[str, int] | None = None) -> dict[str, np.ndarray]:
    """Returns random values for every graph input that no initializer fills; the same for the same seed.

    `dims` gives symbolic dimensions a size; what is missing is 2, 3, 4 ... by order of appearance. Floats lie around
    0 and hold some exact zeros, integers are small; a divisor is never 0.
    """
    random = np.random.default_rng(seed)
    sizes = dict(dims or {})
    filled = {t.name for t in model.graph.initializer}
    divisors = {n.input[1] for n in all_nodes(model) if n.op_type in ("Div", "Mod")}
    divisors |= {n.input[0] for n in all_nodes(model) if n.op_type == "Reciprocal"}
    feeds = {}
    for value in model.graph.input:
        if value.name in filled:
            continue
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            raise ValueError(f"input {value.name!r} has no rank, so its value has to be given")
        shape = []
        for dim in kind.shape.dim:
            fresh = 2 + len(sizes)
            shape.append(
                dim.dim_value if dim.HasField("dim_value") else sizes.setdefault(dim.dim_param or f"?{fresh}", fresh)
            )
        array = random_array(random, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), tuple(shape))
        if value.name in divisors:
            array = np.where(array == 0, np.ones_like(array), array)
        feeds[value.name] = array
    return feeds


# ---- legality


def validate(model: ModelProto) -> None:
    """Raises unless the model is legal: onnx's full check passes (where all operators have inference), every node of
    the default domain fits the schema of the opset of its scope (also in subgraphs and functions), and the IR version
    has what the model uses."""
    model = one_spelling(model)
    onnx.checker.check_model(model, full_check=is_inferable(model))
    _validate_ir(model)
    for root, opset in [(model.graph, opset_of(model)), *((f, opset_of(f)) for f in model.functions)]:
        for node in nodes_of(root):
            if not node.domain:
                _validate_node(node, opset)


def is_inferable(model: ModelProto) -> bool:
    """Tells whether every operator has type inference: many of opsets 1 to 5 have none, nor has Compress below 11, and
    what follows them fails strict inference."""
    schemas = (_schema(node, opset_of(model)) for node in all_nodes(model) if node.domain in ("", "ai.onnx"))
    unranked = any(node.op_type == "Upsample" for node in all_nodes(model)) and opset_of(model) < 9  # needs a rank
    return not unranked and all(schema is None or schema.has_type_and_shape_inference_function for schema in schemas)


def released(opset: int) -> bool:
    """Returns whether onnx is done with an opset of ai.onnx."""
    return ("ai.onnx", opset) in onnx.helper.OP_SET_ID_VERSION_MAP


def ir_version_of(opset: int) -> int:
    """Returns the IR version that an opset came with; for one that onnx is still at work on, that of the newest."""
    newest = max(version for domain, version in onnx.helper.OP_SET_ID_VERSION_MAP if domain == "ai.onnx")
    return int(onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", min(opset, newest))]))


def _validate_ir(model: ModelProto) -> None:
    if model.ir_version < 4:
        missing = {t.name for t in model.graph.initializer} - {v.name for v in model.graph.input}
        assert not missing, f"IR version {model.ir_version}: the initializers {sorted(missing)} are no graph inputs"
    assert model.ir_version >= 8 or not model.functions, f"IR version {model.ir_version} has no functions"
    opset = opset_of(model)
    least = ir_version_of(opset)
    assert model.ir_version >= least, f"opset {opset} came with IR version {least}, the model has {model.ir_version}"


def _validate_node(node: NodeProto, opset: int) -> None:
    name = f"{node.op_type} {node.name or list(node.output)}"
    schema = _schema(node, opset)
    assert schema is not None, f"{name}: there is no such operator at opset {opset}"
    assert not schema.deprecated, f"{name} is deprecated at opset {opset}"
    inputs, outputs = len(node.input), len(node.output)
    assert schema.min_input <= inputs <= schema.max_input, f"{name}: {inputs} inputs at opset {opset}"
    assert schema.min_output <= outputs <= schema.max_output, f"{name}: {outputs} outputs at opset {opset}"
    for attribute in node.attribute:
        known = schema.attributes.get(attribute.name)
        assert known, f"{name}: there is no attribute {attribute.name!r} at opset {opset}"
        assert int(known.type.value) == attribute.type, f"{name}: attribute {attribute.name!r} has the wrong type"
        assert opset >= 11 or not _is_negative_axis(attribute) or _promises(known, attribute), (
            f"{name}: a negative {attribute.name!r} is not promised at opset {opset}"
        )
    present = {a.name for a in node.attribute}
    for attribute_name, known in schema.attributes.items():
        assert not known.required or attribute_name in present, f"{name}: attribute {attribute_name!r} is missing"


def _is_negative_axis(attribute: AttributeProto) -> bool:
    return attribute.name in ("axis", "axes") and min([attribute.i, *attribute.ints]) < 0


def _promises(known: onnx.defs.OpSchema.Attribute, attribute: AttributeProto) -> bool:
    """Tells whether the text lets this axis be negative: runtimes often do so anyway, so numbers alone would not
    tell."""
    return "egative" in known.description or "[-" in known.description or attribute.i == known.default_value.i < 0


# ---- walking


def opset_of(scope: ModelProto | FunctionProto) -> int:
    """Returns the opset of the default domain, however it is spelled."""
    return next(o.version for o in scope.opset_import if o.domain in ("", "ai.onnx"))


def scopes(model: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """The main graph, every function, and every subgraph of these."""
    for root in (model.graph, *model.functions):
        yield from nested(root)


def nested(root: GraphProto | FunctionProto) -> Iterator[GraphProto | FunctionProto]:
    """Returns a graph or function and every subgraph of it."""
    yield root
    for node in root.node:
        for attribute in node.attribute:
            for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                yield from nested(graph)


def nodes_of(root: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Returns the nodes of a graph or function with those of its subgraphs."""
    for scope in nested(root):
        yield from scope.node


def all_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Returns every node of a model."""
    for root in (model.graph, *model.functions):
        yield from nodes_of(root)


def _schema(node: NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    except onnx.defs.SchemaError:
        return None
