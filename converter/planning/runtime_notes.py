# SPDX-License-Identifier: Apache-2.0
"""Adds to a plan what is to be said about the runtime that has to run the result: what was too new for it, why the
opset is another one than its stamps ask for, and what it does not have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from onnx_convert.planning.node_kinds import kinds_of, named, reasons_of
from onnx_convert.report import nodes_text
from onnx_convert.spec import opsets
from onnx_convert.target import ir_versions
from onnx_convert.target.kernels import of_provider
from onnx_convert.target.resolve import unused_excess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan
    from onnx_convert.rewrite.kernels import Kernels
    from onnx_convert.target.kernels import Table
    from onnx_convert.target.request import Request
    from onnx_convert.target.resolve import Target
    from onnx_convert.target.runtimes import Runtime


def added(source: SourceModel, request: Request, target: Target, outcome: Plan) -> Plan:
    """Returns the plan with what is to be said about the runtime that has to run the result."""
    runtime, imports = target.runtime, source.imports
    assert runtime is not None
    after = {opsets.shown(domain): target.opsets.get(domain, version) for domain, version in imports.main.items()}
    keep = request.options.keep_functions
    nodes = Counter(
        (node.domain, node.op_type) for body in outcome.patch.bodies for graph in body.walk() for node in graph.nodes
    )
    too_new = ir_versions.excess(source.proto, source.index.graphs, runtime.ir, str(runtime), keep_functions=keep)
    doubt = [text for text in (runtime.guess, runtime.doubt) if text]
    lowered = [
        f"the import of {domain} goes from {imports.main[domain]} to {most}: {runtime} refuses more, no node uses it"
        for domain, most in unused_excess(source, runtime).items()
    ]
    told = [runtime.verdict(imports.shown, source.proto.ir_version), *lowered]
    warned = [*doubt, *_foreign(source, runtime), *runtime.without_kernel(nodes.elements(), after)]
    if target.kernels is not None:
        told += _moved_for_kernels(source, runtime, target, target.kernels)
        warned += [] if outcome.refusals else _without(nodes, source, target, target.kernels)
    if (provider := of_provider(runtime)) is not None and not outcome.refusals:
        told += _on_cpu(source, after, nodes, provider)
    return outcome._replace(
        refusals=[*outcome.refusals, *too_new],
        notes=[*told, *runtime.remarks, *outcome.notes],
        warnings=[*warned, *outcome.warnings],
    )


def _moved_for_kernels(source: SourceModel, runtime: Runtime, target: Target, kernels: Kernels) -> list[str]:
    """Returns why the opset is another one than the stamps ask for; nothing if it is not."""
    aim, opset = runtime.opsets_for(source.imports.shown).get("ai.onnx"), target.opsets[opsets.AI_ONNX]
    if aim is None or aim == opset:
        return []
    used = {operator for domain, operator in source.index.operators if not opsets.canonical_domain(domain)}
    lacking = sorted(name for name in used if not kernels.has(opsets.AI_ONNX, name, aim))
    shown = ", ".join(lacking[:5]) + (" and others" if len(lacking) > 5 else "")
    what = f"for {shown}" if lacking else "for some of its nodes"
    return [f"{runtime} loads opset {aim}, but has no kernel {what} there: opset {opset} is the nearest that does"]


def _without(nodes: Counter[tuple[str, str]], source: SourceModel, target: Target, kernels: Kernels) -> list[str]:
    """Returns what is to be said of operators without a kernel that are not ours to replace."""
    functions = {key[:2] for key in source.functions}
    told = []
    for (name, operator), count in nodes.items():
        domain = opsets.canonical_domain(name)
        opset = target.opsets.get(domain, source.imports.everywhere.get(domain, 1))
        if (domain, operator) not in functions and not kernels.has(domain, operator, opset):
            what = operator if opsets.is_known(domain) else f"{domain}.{operator}"
            at = opsets.named(opset, domain if opsets.is_known(domain) else opsets.AI_ONNX)
            told.append(f"{target.runtime} has no kernel for {what} at {at} (nodes: {count})")
    return told


def _on_cpu(
    source: SourceModel, after: Mapping[str, int], nodes: Counter[tuple[str, str]], provider: Table
) -> list[str]:
    """Returns which nodes the CPU runs because the provider has no kernel for them: those that stay what they are by
    their types, others by their operator."""
    functions = {key[:2] for key in source.functions}
    opset_of = {opsets.canonical_domain(domain): opset for domain, opset in after.items()}
    staying = {
        kind._replace(opset=opset): names
        for kind, names in kinds_of(source).items()
        if (opset := opset_of.get(kind.domain, kind.opset))
        and opsets.schema_at(kind.operator, opset, kind.domain)
        == opsets.schema_at(kind.operator, kind.opset, kind.domain)
    }
    told = [f"{reason} ({named(names)})" for reason, names in reasons_of(staying, provider).items()]
    kept = {(kind.domain, kind.operator) for kind in staying}
    for (name, operator), count in nodes.items():
        domain = opsets.canonical_domain(name)
        opset = opset_of.get(domain, source.imports.everywhere.get(domain, 1))
        if (domain, operator) not in kept | functions and not provider.has(domain, operator, opset):
            what = operator if opsets.is_known(domain) else f"{domain}.{operator}"
            told.append(f"{what} at opset {opset} (nodes: {count})")
    if told:
        return [f"{provider.runtime} has no kernel for {what}: the CPU runs it" for what in told]
    return [f"{provider.runtime} has a kernel for each node"]


def _foreign(source: SourceModel, runtime: Runtime) -> list[str]:
    """Returns what is to be said of nodes of domains that the runtime does not have, or not at that version."""
    counts = source.foreign
    lacking = runtime.lacks(counts)
    told = [f"{runtime} has to be taught {nodes_text(counts, lacking)}: it does not have them"] if lacking else []
    for domain, most in runtime.excess(source.imports.main).items():
        if domain in counts:
            told.append(f"{runtime} loads {domain} {most} at most, the model has {source.imports.main[domain]}")
    return told
