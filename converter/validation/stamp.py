# SPDX-License-Identifier: Apache-2.0
"""Judges the nodes of a source by the opset that it is stamped with: a file whose nodes are of another opset than its
stamp says must not pass as converted. Each kind of node is judged once: an operator with some attributes, so many
inputs and outputs, and the dtypes of those inputs that are inputs or initializers of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import name_of, subgraphs
from onnx_convert.rewrite import legality, registry
from onnx_convert.spec import opsets, signatures
from onnx_convert.spec.types import tensor_type, type_str

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

_LISTED = 20  # nodes


class _Kind(NamedTuple):
    """What a node is judged by."""

    domain: str
    operator: str
    attributes: tuple[str, ...]
    outputs: int
    inputs: tuple[str, ...]  # the types that are known, "" for the others


class _Case(NamedTuple):
    node: NodeProto
    opset: int
    types: Mapping[str, str]


def judge(model: ModelProto, where: str) -> None:
    """Raises InvalidModelError if any node does not fit the opset that it is written for, with all that do not and the
    opsets that all nodes fit."""
    cases: dict[tuple[int, _Kind], _Case] = {}
    called = {(opsets.canonical_domain(function.domain), function.name) for function in model.functions}
    for number, (body, imports, types) in enumerate(_bodies(model)):
        for node in _nodes(body):
            inputs = node.input[:]
            attributes = tuple([attribute.name for attribute in node.attribute])
            known = tuple([types.get(name, "") for name in inputs])
            kind = _Kind(node.domain, node.op_type, attributes, len(node.output), known)
            if (number, kind) not in cases:
                opset = imports.get(opsets.canonical_domain(node.domain), 0)
                cases[number, kind] = _Case(node, opset, types)
    faults = {key: fault for key, case in cases.items() if (fault := _fault(case, case.opset, called))}
    if not faults:
        return
    lines: list[str] = []
    for number, (body, _, types) in enumerate(_bodies(model)):
        for node in _nodes(body):
            known = tuple([types.get(name, "") for name in node.input])
            names = tuple([attribute.name for attribute in node.attribute])
            why = faults.get((number, _Kind(node.domain, node.op_type, names, len(node.output), known)))
            if why:
                lines.append(f"{node.op_type} {name_of(node)!r} ({why})")
    shown = ", ".join(lines[:_LISTED]) + (f" and {len(lines) - _LISTED} more" if len(lines) > _LISTED else "")
    worst = next(case for key, case in cases.items() if key in faults)
    what = "1 node does" if len(lines) == 1 else f"{len(lines)} nodes do"
    stamp = f"{opsets.shown(opsets.canonical_domain(worst.node.domain))} {worst.opset}"
    raise InvalidModelError(
        f"{what} not fit {stamp}, its stamp: {shown}; {_fitting(cases, worst, called)}", where=where
    )


def _bodies(model: ModelProto) -> Iterator[tuple[GraphProto | FunctionProto, dict[str, int], dict[str, str]]]:
    """Each body with its opsets, and the types that are known in it without inference."""
    types = {tensor.name: type_str(tensor_type(tensor.data_type)) for tensor in model.graph.initializer}
    types.update((value.name, type_str(value.type)) for value in model.graph.input)
    imports = _imports(model)
    yield model.graph, imports, types
    for training in model.training_info:
        yield training.initialization, imports, {}
        yield training.algorithm, imports, {}
    for function in model.functions:
        yield function, _imports(function), {}


def _imports(holder: ModelProto | FunctionProto) -> dict[str, int]:
    return {opsets.canonical_domain(entry.domain): entry.version for entry in holder.opset_import} or {
        opsets.AI_ONNX: 1
    }


def _nodes(body: Any) -> Iterator[NodeProto]:
    """All nodes of a body, those of subgraphs included. A name means the same in all graphs of one scope, or is made
    in the inner one, whose types are not known here."""
    holds: dict[tuple[str, str], bool] = {}
    for node in body.node:
        yield node
        operator = node.domain, node.op_type
        if operator not in holds:
            holds[operator] = opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain))
        if holds[operator]:
            for _, _, graph in subgraphs(node):
                yield from _nodes(graph)


def _fault(case: _Case, opset: int, called: set[tuple[str, str]]) -> str:
    """Why a node is not one of an opset, "" if it is, or if nobody knows."""
    domain, operator = opsets.canonical_domain(case.node.domain), case.node.op_type
    if not opsets.is_known(domain) or (domain, operator) in called or registry.is_experimental(operator, domain):
        return ""
    rule = signatures.signature_of(operator, opset, domain)
    if rule is None:
        return ""  # it is refused by name
    newest = signatures.signature_of(operator, opsets.latest(domain), domain)
    if rule.deprecated and newest is not None and not newest.deprecated:
        rule = rule._replace(deprecated=False)  # that version was superseded, but it is what the stamp says
    finding = legality.check(case.node, rule, opset, lambda name: case.types.get(name, "")).finding
    return finding.reason if finding is not None else ""


def _fitting(cases: Mapping[tuple[int, _Kind], _Case], worst: _Case, called: set[tuple[str, str]]) -> str:
    """The opsets of the domain of a misfit that all nodes fit, in words."""
    domain = opsets.canonical_domain(worst.node.domain)
    versions = range(1, opsets.latest(domain) + 1)
    ours = [case for case in cases.values() if opsets.canonical_domain(case.node.domain) == domain]
    fits = [
        opset
        for opset in versions
        if all(opsets.schema_at(c.node.op_type, opset, domain) and not _fault(c, opset, called) for c in ours)
    ]
    if not fits:
        return "there is no opset that all nodes fit"
    ranges: list[list[int]] = []
    for opset in fits:
        if ranges and ranges[-1][1] == opset - 1:
            ranges[-1][1] = opset
        else:
            ranges.append([opset, opset])
    told = " and ".join(str(low) if low == high else f"{low} to {high}" for low, high in ranges)
    return f"all nodes fit opset {told}: perhaps the stamp is wrong"
