# SPDX-License-Identifier: Apache-2.0
"""Judges the nodes of a source by the opset that it is stamped with: a file whose nodes are of another opset than its
stamp says must not pass as converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.graphs import name_of
from onnx_convert.model.validation import members
from onnx_convert.rewrite import legality
from onnx_convert.spec import opsets, signatures
from onnx_convert.validation import attributes, shapes, uses

if TYPE_CHECKING:
    from collections.abc import Collection

    from onnx import ModelProto

    from onnx_convert.validation.cases import Case

_LISTED: Final = 20  # nodes


def judge(
    cases: Collection[Case], model: ModelProto, called: Collection[tuple[str, str]], where: str, *, declared: bool
) -> None:
    """Raises InvalidModelError if any node of a model does not fit the opset that it is written for, with all that do
    not and the opsets that all nodes fit. `called` are the functions, by domain and name; `declared` says that the
    opsets are not those of the stamp, but what somebody said instead."""
    faults = [(case, fault) for case in cases if (fault := _fault(case, case.opset, called))]
    if not faults:
        return
    texts = {kind: fault for case, fault in faults for kind in case.kinds}
    lines = [f"{node.op_type} {name_of(node)!r} ({texts[kind]})" for kind, node in members(model, texts)]
    shown = ", ".join(lines[:_LISTED]) + (f" and {len(lines) - _LISTED} more" if len(lines) > _LISTED else "")
    misfits = {case.domain: case.opset for case, _ in reversed(faults)}
    what = "1 node does" if len(lines) == 1 else f"{len(lines)} nodes do"
    stamps = " and ".join(f"{opsets.shown(domain)} {misfits[domain]}" for domain in reversed(misfits))
    fitting = "; ".join(
        _fitting(cases, domain, misfits[domain], called, declared=declared) for domain in reversed(misfits)
    )
    whose = "as it is declared to be" if declared else "its stamp"
    raise InvalidModelError(f"{what} not fit {stamps}, {whose}: {shown}; {fitting}", where=where)


def _fault(case: Case, opset: int, called: Collection[tuple[str, str]]) -> str:
    """Returns why a node is not one of an opset, "" if it is, or if nobody knows."""
    domain, operator = case.domain, case.node.op_type
    if not opsets.is_known(domain) or (domain, operator) in called:
        return ""
    signature = signatures.signature_of(operator, opset, domain)
    if signature is None:
        return ""  # it is refused by name, or was experimental then
    newest = signatures.signature_of(operator, opsets.latest(domain), domain)
    if signature.deprecated and newest is not None and not newest.deprecated:
        signature = signature._replace(deprecated=False)  # that version was superseded, but it is what the stamp says
    # Constant took floats alone below 9, yet Reshape and its like took whole numbers already: exporters of that time
    # wrote them as Constants, and so did onnx for its own test data. What such a node means is in no doubt.
    type_str_of = _unknown if operator == "Constant" else case.type_str_of
    finding = legality.check(case.node, signature, opset, type_str_of).finding
    return finding.reason if finding is not None else ""


def _unknown(_: str) -> str:
    return ""


def _fitting(
    cases: Collection[Case], domain: str, present: int, called: Collection[tuple[str, str]], *, declared: bool
) -> str:
    """Returns the opsets of the domain of a misfit that all nodes fit, in words, and how to say that it is one."""
    ours = [case for case in cases if case.domain == domain]
    fits = [opset for opset in range(1, opsets.latest(domain) + 1) if all(_fits(case, opset, called) for case in ours)]
    name = "" if domain == opsets.AI_ONNX else f"{domain} "
    if not fits:
        return f"there is no {name}opset that all nodes fit"
    ranges: list[list[int]] = []
    for opset in fits:
        if ranges and ranges[-1][1] == opset - 1:
            ranges[-1][1] = opset
        else:
            ranges.append([opset, opset])
    told = " and ".join(str(low) if low == high else f"{low} to {high}" for low, high in ranges)
    nearest = min(fits, key=lambda opset: abs(opset - present))
    way = f"--from {domain}:{nearest}" if domain != opsets.AI_ONNX else f"--from {nearest}"
    doubt = "" if declared else "if the stamp is wrong, "
    return f"all nodes fit {name}opset {told}: {doubt}{way} reads the model at {nearest}"


def _fits(case: Case, opset: int, called: Collection[tuple[str, str]]) -> bool:
    """Returns whether a node is one of an opset, with valid attributes, ranks and lengths."""
    domain, operator = case.domain, case.node.op_type
    if (domain, operator) in called:
        return True
    if not opsets.schema_at(operator, opset, domain) or _fault(case, opset, called):
        return False
    if attributes.fault(case.node, opset, domain):
        return False
    has_rules = shapes.has_rules(operator, domain) and not uses.has_references(case.node)
    return not (has_rules and shapes.fault(case._replace(opset=opset).use))
