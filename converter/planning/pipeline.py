# SPDX-License-Identifier: Apache-2.0
"""Plans a conversion from end to end: resolve the target, plan, check what comes out, and report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.errors import RefusedError
from onnx_convert.planning.check import check
from onnx_convert.planning.planner import plan
from onnx_convert.planning.reach import Reach
from onnx_convert.report import Report
from onnx_convert.spec import opsets
from onnx_convert.target import ir_versions
from onnx_convert.target.resolve import resolve
from onnx_convert.validation.validate import validate

if TYPE_CHECKING:
    from onnx_convert.model.patch import ModelPatch
    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan
    from onnx_convert.target.request import Request
    from onnx_convert.target.resolve import Target


def planned(source: SourceModel, request: Request) -> tuple[ModelPatch, Report]:
    """Returns the patch that does what is asked, and the report of it; the model is only read.

    Raises RefusedError if there is no way, InvalidModelError, UsageError, and InternalError if a rewrite does not hold.
    """
    target = resolve(source, request)
    validate(source)
    outcome = plan(source, target, request.options)
    if target.runtime is not None:
        outcome = _for_runtime(source, request, target, outcome)
    if outcome.refusals:
        nearest = Reach(source, request).nearest(target.opsets[opsets.AI_ONNX], outcome.refusals)
        raise RefusedError(outcome.refusals, _report(source, target, outcome), nearest)
    if outcome.patch.any_change or target.moves:
        outcome = outcome.completed(check(source, outcome))
    return outcome.patch, _report(source, target, outcome)


def _for_runtime(source: SourceModel, request: Request, target: Target, outcome: Plan) -> Plan:
    """Returns the plan with what is to be said about the runtime that has to load the result."""
    runtime, imports = target.runtime, source.imports
    assert runtime is not None
    after = {opsets.shown(domain): target.opsets.get(domain, version) for domain, version in imports.main.items()}
    keep = request.options.keep_functions
    nodes = (node for body in outcome.patch.bodies for graph in body.walk() for node in graph.nodes)
    kernels = runtime.without_kernel(((node.domain, node.op_type) for node in nodes), after)
    too_new = ir_versions.excess(source.proto, source.index.graphs, runtime.ir, str(runtime), keep_functions=keep)
    doubt = [runtime.doubt] if runtime.doubt else []
    return outcome._replace(
        refusals=[*outcome.refusals, *too_new],
        notes=[runtime.verdict(imports.shown, source.proto.ir_version), *runtime.remarks, *outcome.notes],
        warnings=[*doubt, *kernels, *outcome.warnings],
    )


def _report(source: SourceModel, target: Target, outcome: Plan) -> Report:
    """Returns the report of a plan; of a refused one without what the result would have been."""
    imports = source.imports.main
    report = Report(
        source=source.name,
        opsets_before=source.imports.shown,
        opsets_after={opsets.shown(domain): target.opsets.get(domain, version) for domain, version in imports.items()},
        ir_version_before=source.proto.ir_version,
        nodes_before=source.index.nodes,
        steps=outcome.steps,
        inlined=[*outcome.inlined],
        assumed=[*outcome.assumed],
        notes=[*outcome.notes],
        warnings=[*outcome.warnings],
        refusals=[*outcome.refusals],
    )
    if not outcome.refusals:
        added = {domain for body in outcome.patch.graph.walk() for domain in body.domains} - imports.keys()
        report.opsets_after |= {opsets.shown(d): target.opsets[d] for d in added if d in target.opsets}
        report.touched = outcome.patch.any_change or target.moves
        report.ir_version_after = target.ir_version
        report.nodes_after = outcome.patch.count()
    return report
