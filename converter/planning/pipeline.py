# SPDX-License-Identifier: Apache-2.0
"""Plans a conversion from end to end: resolve the target, plan, check what comes out, and report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnx_convert.errors import RefusedError
from onnx_convert.planning import kernel_opset, runtime_notes
from onnx_convert.planning.changes import changes_of
from onnx_convert.planning.check import check
from onnx_convert.planning.examples import Examples, operators_after, operators_before
from onnx_convert.report import Report
from onnx_convert.spec import opsets
from onnx_convert.target.resolve import resolve
from onnx_convert.validation.validate import validate

if TYPE_CHECKING:
    from onnx import TypeProto

    from onnx_convert.model.patch import ModelPatch
    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan
    from onnx_convert.target.request import Request
    from onnx_convert.target.resolve import Target


def planned(source: SourceModel, request: Request) -> tuple[ModelPatch, Report]:
    """Returns the patch that does what is asked, and the report of it; the model is only read.

    Raises RefusedError if there is no way, InvalidModelError, UsageError, and InternalError if a rewrite does not hold.
    """
    started = time.perf_counter()
    target = resolve(source, request)
    validate(source)
    target, outcome = kernel_opset.planned(source, request, target)
    if target.runtime is not None:
        outcome = runtime_notes.added(source, request, target, outcome)
    if outcome.refusals:
        refused = _refused(source, request, target, outcome)
        refused.report.seconds = time.perf_counter() - started
        raise refused
    examples = Examples(source, outcome) if request.examples else None
    types: Mapping[str, TypeProto] = {}
    if outcome.patch.any_change or target.moves:
        findings = check(source, outcome, examples.values if examples is not None else frozenset())
        outcome, types = outcome.completed(findings), findings.types
    report = _report(source, target, outcome)
    if examples is not None:
        report.examples = examples.told([change[:4] for change in report.changes], types)
        report.operators_before, report.operators_after = operators_before(source), operators_after(outcome)
    return outcome.patch, report


def _refused(source: SourceModel, request: Request, target: Target, outcome: Plan) -> RefusedError:
    """Returns the error for a plan with refusals, which tells what helps and what is within reach."""
    from onnx_convert.planning.reach import Reach
    from onnx_convert.planning.remedies import with_remedies

    aim = target.opsets[opsets.AI_ONNX]
    outcome = outcome._replace(refusals=with_remedies(source, request, aim, outcome.refusals))
    keeping = _keeping_ml(source, request, target)
    if keeping is None or not any(refusal.domain == opsets.AI_ONNX_ML for refusal in outcome.refusals):
        nearest = Reach(source, request).nearest(aim, outcome.refusals)
        return RefusedError(outcome.refusals, _report(source, target, outcome), nearest)
    present = source.imports.everywhere[opsets.AI_ONNX_ML]
    way = f"--to ai.onnx.ml:{present} keeps ai.onnx.ml where it is"
    told = [
        refusal._replace(remedy=f"{refusal.remedy}; or {way}" if refusal.remedy else way)
        if refusal.domain == opsets.AI_ONNX_ML
        else refusal
        for refusal in outcome.refusals
    ]
    outcome = outcome._replace(refusals=told)
    reach = Reach(source, keeping)
    refusals = reach.refusals_at(aim)
    nearest = aim if not refusals else reach.nearest(aim, refusals)
    also = {opsets.AI_ONNX_ML: present} if nearest is not None else {}
    return RefusedError(told, _report(source, target, outcome), nearest, also)


def _keeping_ml(source: SourceModel, request: Request, target: Target) -> Request | None:
    """Returns the request that leaves ai.onnx.ml where it is; None if it follows ai.onnx only where that was asked."""
    present = source.imports.everywhere.get(opsets.AI_ONNX_ML, 0)
    asked = request.to if isinstance(request.to, Mapping) else {}
    if request.runtime is not None or opsets.AI_ONNX_ML in asked or present <= target.opsets.get(opsets.AI_ONNX_ML, 0):
        return None
    return request._replace(to={**asked, opsets.AI_ONNX: target.opsets[opsets.AI_ONNX], opsets.AI_ONNX_ML: present})


def _report(source: SourceModel, target: Target, outcome: Plan) -> Report:
    """Returns the report of a plan; of a refused one without what the result would have been."""
    imports = source.imports.main
    report = Report(
        source=source.name,
        opsets_before=source.imports.shown,
        opsets_after={opsets.shown(domain): target.opsets.get(domain, version) for domain, version in imports.items()},
        ir_version_before=source.proto.ir_version,
        runtime=str(target.runtime) if target.runtime is not None else "",
        nodes_before=source.index.nodes,
        steps=outcome.steps,
        inlined=[*outcome.inlined],
        assumed=[*outcome.assumed],
        notes=[*outcome.notes],
        warnings=[*outcome.warnings],
        refusals=[*outcome.refusals],
    )
    if source.restamping is not None:
        report.stamped = source.restamping.shown
        report.notes = [*source.restamping.told, *report.notes]
    if not outcome.refusals:
        added = {domain for body in outcome.patch.graph.walk() for domain in body.domains} - imports.keys()
        report.opsets_after |= {opsets.shown(d): target.opsets[d] for d in added if d in target.opsets}
        report.touched = outcome.patch.any_change or target.moves
        report.changes, report.steps, report.inexact, report.nodes_changed, report.nodes_kept = changes_of(
            source, outcome
        )
        dropped = outcome.patch.graph.dropped | outcome.patch.graph.dropped_inputs
        absent = target.opsets.keys() - source.imports.everywhere.keys() - added - {opsets.AI_ONNX}
        report.notes += [
            f"the model does not import {domain}: its opset is nothing to change" for domain in sorted(absent)
        ]
        before = [value.name for value in source.proto.graph.input]
        report.inputs_added = [value.name for value in outcome.patch.graph.inputs]
        report.inputs_removed = [name for name in before if name in dropped]
        report.ir_version_after = target.ir_version
        report.nodes_after = outcome.patch.count()
    return report
