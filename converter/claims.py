# SPDX-License-Identifier: Apache-2.0
"""Tells true statements of a model from false ones: what it says of the types of its values is a claim, not a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx.shape_inference
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from onnx_convert import opsets, settling
from onnx_convert.facts import Facts, subgraphs
from onnx_convert.types import contradicts, nameless, size, tensor_type

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from onnx_convert.edits import GraphEdit
    from onnx_convert.settling import Settled


def leniently(serialised: bytes) -> GraphProto:
    """Returns the main graph of a view with every type that can be inferred, as it is where inference breaks off."""
    model = ModelProto.FromString(serialised)
    try:
        return onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True).graph
    except Exception:  # some are raised all the same, as for a call that leaves out the last output of a function
        graph: GraphProto = model.graph
        return graph


def settle(
    serialised: bytes,
    found: GraphProto | None,
    infer: Callable[[bytes], GraphProto],
    complain: Callable[[Exception], None],
) -> Settled:
    """Returns what is known of a view, with the claims of the model that nothing contradicts. `found` is what `infer`
    says of it as it is, None if it fails; `complain` is told what is wrong whatever is claimed."""
    try:
        return settling.settle(ModelProto.FromString(serialised), found, infer)
    except Exception:  # C++ errors come as several unrelated types
        bare = without(serialised)
    try:
        settled = _infer(bare, infer)
    except Exception as error:
        complain(error)
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
    defined = {(opsets.normalise(function.domain), function.name) for function in model.functions}
    _strip(model.graph, names, defined)
    stripped: bytes = model.SerializeToString()
    return stripped


def _strip(graph: GraphProto, names: Container[str] | None, defined: Container[tuple[str, str]]) -> None:
    kept = {name for node in graph.node if _is_foreign(node, defined) for name in node.output}
    for index in reversed(range(len(graph.value_info))):
        name = graph.value_info[index].name
        if name not in kept if names is None else name in names:
            del graph.value_info[index]
    for value in graph.output:
        if value.type.HasField("tensor_type") and (value.name not in kept if names is None else value.name in names):
            value.type.tensor_type.ClearField("shape")
    if names is None:
        for node in graph.node:
            if opsets.may_hold_graphs(node.op_type, opsets.normalise(node.domain)):
                for _, _, inner in subgraphs(node):
                    _strip(inner, None, defined)


def _is_foreign(node: NodeProto, defined: Container[tuple[str, str]]) -> bool:
    domain = opsets.normalise(node.domain)
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


def disown(edit: GraphEdit, false: Container[str], inferred: GraphProto) -> list[str]:
    """Leaves out what a main graph states although it is not so: of an inner value the statement, of an output the
    dimensions that contradict. Returns the values."""
    facts = Facts(lambda: inferred)
    graph = edit.graph
    assert isinstance(graph, GraphProto)
    named = [value.name for value in graph.value_info if value.name in false and value.name not in edit.forgotten]
    edit.forgotten.update(named)
    refined = {value.name for value in edit.refined}
    for value in graph.output:
        known = facts.type_of(value.name)
        if value.name in false and value.name not in refined and known is not None:
            edit.refined.append(ValueInfoProto(name=value.name, type=_mended(value.type, known)))
            named.append(value.name)
    return list(dict.fromkeys(named))


def _mended(claim: TypeProto, known: TypeProto) -> TypeProto:
    """What is claimed of an output, but for the dimensions that contradict what is known."""
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


def forget_all(edit: GraphEdit) -> bool:
    """Leaves out all that a graph and those nested in it state of inner values, and what nested ones state of the sizes
    of their outputs; whether there is anything."""
    found = False
    for one in edit.walk():
        if not isinstance(one.graph, GraphProto):
            continue
        stated = {value.name for value in one.graph.value_info} - one.forgotten
        one.forgotten |= stated
        found |= bool(stated)
        for value in one.graph.output if one is not edit else ():
            if value.type.tensor_type.HasField("shape"):
                bare = ValueInfoProto(name=value.name, type=tensor_type(value.type.tensor_type.elem_type))
                one.refined.append(bare)
                found = True
    return found
