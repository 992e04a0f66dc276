# SPDX-License-Identifier: Apache-2.0
"""Judges the nodes of a source by the opset that it is stamped with: a file whose nodes are of another opset than its
stamp says must not pass as converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import name_of
from onnx_convert.model.validation import members
from onnx_convert.rewrite import legality, registry
from onnx_convert.spec import opsets, signatures

if TYPE_CHECKING:
    from collections.abc import Collection

    from onnx import ModelProto

    from onnx_convert.validation.cases import Case

_LISTED: Final = 20  # nodes


def judge(cases: Collection[Case], model: ModelProto, called: Collection[tuple[str, str]], where: str) -> None:
    """Raises InvalidModelError if any node of a model does not fit the opset that it is written for, with all that do
    not and the opsets that all nodes fit. `called` are the functions, by domain and name."""
    faults = [(case, fault) for case in cases if (fault := _fault(case, case.opset, called))]
    if not faults:
        return
    texts = {kind: fault for case, fault in faults for kind in case.kinds}
    lines = [f"{node.op_type} {name_of(node)!r} ({texts[kind]})" for kind, node in members(model, texts)]
    shown = ", ".join(lines[:_LISTED]) + (f" and {len(lines) - _LISTED} more" if len(lines) > _LISTED else "")
    worst = faults[0][0]
    what = "1 node does" if len(lines) == 1 else f"{len(lines)} nodes do"
    stamp = f"{opsets.shown(worst.domain)} {worst.opset}"
    fitting = _fitting(cases, worst, called)
    raise InvalidModelError(f"{what} not fit {stamp}, its stamp: {shown}; {fitting}", where=where)


def _fault(case: Case, opset: int, called: Collection[tuple[str, str]]) -> str:
    """Returns why a node is not one of an opset, "" if it is, or if nobody knows."""
    domain, operator = case.domain, case.node.op_type
    if not opsets.is_known(domain) or (domain, operator) in called or registry.is_experimental(operator, domain):
        return ""
    signature = signatures.signature_of(operator, opset, domain)
    if signature is None:
        return ""  # it is refused by name
    newest = signatures.signature_of(operator, opsets.latest(domain), domain)
    if signature.deprecated and newest is not None and not newest.deprecated:
        signature = signature._replace(deprecated=False)  # that version was superseded, but it is what the stamp says
    finding = legality.check(case.node, signature, opset, case.type_str_of).finding
    return finding.reason if finding is not None else ""


def _fitting(cases: Collection[Case], worst: Case, called: Collection[tuple[str, str]]) -> str:
    """Returns the opsets of the domain of a misfit that all nodes fit, in words."""
    domain = worst.domain
    ours = [case for case in cases if case.domain == domain]
    fits = [
        opset
        for opset in range(1, opsets.latest(domain) + 1)
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
