# SPDX-License-Identifier: Apache-2.0
"""Finds whose fault it is that a conversion fails: the model's, if anything is found in it, else ours."""

from __future__ import annotations

import onnx
import onnx.inliner
from onnx import ModelProto

from onnx_convert.analysis import claims, settling, view
from onnx_convert.analysis.facts import Facts
from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import subgraphs
from onnx_convert.model.source import SourceModel
from onnx_convert.planning import computed
from onnx_convert.planning.judging import faults_of, settle
from onnx_convert.spec.types import contradicts
from onnx_convert.validation.validate import validate


def blamed(source: SourceModel, error: Exception) -> Exception:
    """Returns the error that a fault of a conversion is: the model's if any is found in it, or in it with its functions
    in place of their calls; else the same."""
    node, faults = getattr(error, "node", ""), faults_of(source)
    if faults:
        said = f"node {node!r}: the model" if node else ""
        return InvalidModelError(f"{said} does not pass onnx's own check: {faults[0]}".strip(), where=source.name)
    why = _falsely_stated(source) or _why_not_valid_as_inferred(source)
    if not why and source.proto.functions:
        why = _why_not_valid(source)
    why = why or _why_not_valid_as_computed(source)
    return InvalidModelError(why, where=source.name) if why else error


def _why_not_valid_as_inferred(source: SourceModel) -> str:
    """Returns what is wrong with a node of a source once the types of its inputs are known, "" if nothing is.

    What is certain without inference are inputs and constants: so each value that a node makes is an input as well,
    under another name, with the type that follows.
    """
    model = ModelProto.FromString(view.of_source(source).serialised())
    _, settled = settle(claims.without(model.SerializeToString()), None)
    if settled is None:
        return ""
    made = {name for node in model.graph.node if node.op_type != "Constant" for name in node.output}
    names = {}
    for value in settled.graph.value_info:
        if value.name in made:
            names[value.name] = f"the value {value.name}"
            model.graph.input.add(name=names[value.name], type=value.type)
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    try:
        validate(SourceModel(model, source.name))
    except InvalidModelError as invalid:
        return invalid.why
    return ""


def _why_not_valid_as_computed(source: SourceModel) -> str:
    """Returns what is wrong with a source once the sizes that it computes are known, "" if nothing is."""
    try:
        model = computed.with_numbers(source)
    except Exception:  # it is too strange to be computed
        return ""
    if model is None:
        return ""
    faults, settled = settle(model.SerializeToString(), None)
    if settled is None:
        return f"it does not pass onnx's own check once its sizes are computed: {faults[0]}"
    return _why_not_valid_as_inferred(SourceModel(model, source.name))


def _why_not_valid(source: SourceModel) -> str:
    """Returns what is wrong with a source once its functions stand in place of their calls, "" if nothing is."""
    whole = "with its functions in place of their calls"
    try:
        inlined = onnx.inliner.inline_local_functions(ModelProto.FromString(view.of_source(source).serialised()))
        held = SourceModel(inlined, source.name)
        validate(held)
        why = _falsely_stated(held)
    except InvalidModelError as invalid:
        return f"{whole}: {invalid.why}"
    except Exception:  # it is too strange to be inlined
        return ""
    if faults := faults_of(held):
        why = f"it does not pass onnx's own check: {faults[0]}"
    return f"{whole}: {why}" if why else ""


def _falsely_stated(source: SourceModel) -> str:
    """Returns what the source states of a value of a subgraph although the operators say otherwise, "" if nothing."""
    bare = claims.without(view.of_source(source).serialised())
    graph = source.proto.graph
    facts = Facts(lambda: settling.settle(ModelProto.FromString(bare), None, claims.leniently).graph, len(graph.node))
    pending = [(graph, facts)]
    while pending:
        graph, facts = pending.pop()
        for index, node in enumerate(graph.node):
            for attribute, position, inner in subgraphs(node):
                known = facts.child(index, attribute, position, len(inner.node))
                for value in (*inner.value_info, *inner.output):
                    if contradicts(known.type_of(value.name), value.type):
                        return f"the type that a subgraph states of {value.name!r} is not so"
                pending.append((inner, known))
    return ""
