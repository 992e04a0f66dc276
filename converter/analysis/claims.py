# SPDX-License-Identifier: Apache-2.0
"""Tells true statements of a model from false ones: what it says of the types of its values is a claim, not a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from onnx_convert.analysis import onnx_inference, settling
from onnx_convert.analysis.facts import Facts
from onnx_convert.model.graphs import subgraphs
from onnx_convert.spec import opsets
from onnx_convert.spec.types import contradicts, nameless, size

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from onnx_convert.analysis.settling import Settled


def leniently(serialised: bytes) -> GraphProto:
    """Returns the main graph of a view with every type that can be inferred, as it is where inference breaks off."""
    try:
        return onnx_inference.infer(serialised, check_type=False, strict=False, data_prop=True)
    except Exception:  # some are raised all the same, as for a call that leaves out the last output of a function
        graph: GraphProto = ModelProto.FromString(serialised).graph
        return graph


def settle(
    serialised: bytes,
    found: GraphProto | None,
    infer: Callable[[bytes], GraphProto],
) -> Settled:
    """Returns what is known of a view, with the claims of the model that nothing contradicts. `found` is what `infer`
    says of it as it is, None if it fails."""
    try:
        return settling.settle(ModelProto.FromString(serialised), found, infer)
    except Exception:  # C++ errors come as several unrelated types
        bare = without(serialised)
    try:
        settled = _infer(bare, infer)
    except Exception:  # it is wrong whatever is claimed
        return settling.settle(ModelProto.FromString(bare), leniently(bare), leniently)
    false = contradicting(ModelProto.FromString(serialised).graph, settled.graph)
    try:
        again = _infer(without(serialised, false), infer)
    except Exception:  # it is in a subgraph, or between two claims
        again = settled
    again.false |= false
    return again


def _infer(serialised: bytes, infer: Callable[[bytes], GraphProto]) -> Settled:
    try:
        found = infer(serialised)
    except Exception:  # which what is cut may mend
        found = None
    return settling.settle(ModelProto.FromString(serialised), found, infer)


def without(serialised: bytes, names: Container[str] | None = None) -> bytes:
    """Returns a view without what is claimed of the types of some values of its main graph, or of all values anywhere
    but those of operators that onnx does not know, of which nobody else tells anything. Dtypes of outputs stay."""
    model = ModelProto.FromString(serialised)
    defined = {(opsets.canonical_domain(function.domain), function.name) for function in model.functions}
    _strip(model.graph, names, defined)
    stripped: bytes = model.SerializeToString()
    return stripped


def _strip(graph: GraphProto, names: Container[str] | None, defined: Container[tuple[str, str]]) -> None:
    kept = {name for node in graph.node if _is_foreign(node, defined) for name in node.output}
    for index in reversed(range(len(graph.value_info))):
        name, says = graph.value_info[index].name, graph.value_info[index].type.WhichOneof("value")
        if says and (name not in kept if names is None else name in names):  # an empty type is no claim, but a shield
            del graph.value_info[index]
    for value in graph.output:
        if value.type.HasField("tensor_type") and (value.name not in kept if names is None else value.name in names):
            value.type.tensor_type.ClearField("shape")
    if names is None:
        for node in graph.node:
            if opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
                for _, _, inner in subgraphs(node):
                    _strip(inner, None, defined)


def _is_foreign(node: NodeProto, defined: Container[tuple[str, str]]) -> bool:
    domain = opsets.canonical_domain(node.domain)
    return not opsets.is_known(domain) and (domain, node.op_type) not in defined


def contradicting(graph: GraphProto, inferred: GraphProto) -> set[str]:
    """Returns the values of a main graph of which it claims what contradicts what is inferred without claims."""
    facts = Facts(lambda: inferred)
    return {
        value.name
        for values in (graph.value_info, graph.output)
        for value in values
        if (known := facts.type_of(value.name)) is not None and contradicts(known, value.type)
    }


def retract(
    graph: GraphProto, false: Container[str], inferred: GraphProto, known: Container[str]
) -> tuple[set[str], list[ValueInfoProto]]:
    """Returns what to do about statements of a main graph that are not so: the inner values whose statements are left
    out, and the types of outputs without the dimensions that contradict. Values in `known` are seen to already."""
    facts = Facts(lambda: inferred)
    stale = {value.name for value in graph.value_info if value.name in false and value.name not in known}
    refined = [
        ValueInfoProto(name=value.name, type=_mended(value.type, kind))
        for value in graph.output
        if value.name in false and value.name not in known and (kind := facts.type_of(value.name)) is not None
    ]
    return stale, refined


def _mended(claim: TypeProto, known: TypeProto) -> TypeProto:
    """Returns what is claimed of an output, but for the dimensions that contradict what is known."""
    clean = nameless(known)
    if claim.WhichOneof("value") != clean.WhichOneof("value") or not claim.HasField("tensor_type"):
        return clean
    made = TypeProto()
    made.CopyFrom(claim)
    shape, true = made.tensor_type.shape, clean.tensor_type.shape
    made.tensor_type.elem_type = clean.tensor_type.elem_type or claim.tensor_type.elem_type
    if not made.tensor_type.HasField("shape") or not clean.tensor_type.HasField("shape"):
        return made
    if len(shape.dim) != len(true.dim):
        shape.CopyFrom(true)
    for mine, other in zip(shape.dim, true.dim, strict=True):
        numbers = size(mine), size(other)
        if all(isinstance(number, int) for number in numbers) and numbers[0] != numbers[1]:
            mine.CopyFrom(other)
    return made
