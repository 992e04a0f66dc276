# SPDX-License-Identifier: Apache-2.0
"""Finds the opset at which a runtime has a kernel for every node: a stamp that loads is not enough.

Nearest to where the model would go by its stamps alone, lower before higher. An operator that has no kernel at any
opset does not count: it is taken apart where it stands, or refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.planning.planner import plan
from onnx_convert.spec import opsets
from onnx_convert.target.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan
    from onnx_convert.report import Refusal
    from onnx_convert.rewrite.kernels import Kernels
    from onnx_convert.target.request import Request
    from onnx_convert.target.resolve import Target
    from onnx_convert.target.runtimes import Runtime


MOST_TRIED: Final = 8
"""Opsets that are planned for, if something is refused at each."""


def planned(source: SourceModel, request: Request, target: Target) -> tuple[Target, Plan]:
    """Returns the target at which every node has a kernel, with the plan that leads there; if there is none, that of
    the stamps."""
    runtime, kernels = target.runtime, target.kernels
    if runtime is None or kernels is None:
        return target, plan(source, target, request.options)
    aim = target.opsets[opsets.AI_ONNX]
    first: tuple[Target, Plan] | None = None
    tried: set[object] = set()
    for opset in _fitting(source, kernels, aim, runtime):
        if first is not None and not _is_new(first[1].refusals, opset, kernels, tried):
            continue
        there = target if opset == aim else resolve(source, request, opset)
        found = there, plan(source, there, request.options)
        if not found[1].refusals:
            return found
        if first is None:
            first = found
            _is_new(first[1].refusals, opset, kernels, tried)
            if not any(refusal.code == "no-kernel" for refusal in found[1].refusals):
                break  # something else is in the way
        if len(tried) == MOST_TRIED:
            break
    assert first is not None
    return first


def _is_new(refusals: Sequence[Refusal], opset: int, kernels: Kernels, tried: set[object]) -> bool:
    """Returns whether an opset may do better than those tried: operators that were refused have other versions or
    kernels there, or it was not themselves that were refused but what replaces them. Adds it to those tried."""
    refused = {refusal.operator for refusal in refusals if refusal.code == "no-kernel" and refusal.domain == "ai.onnx"}
    replaced = any("what replaces it" in refusal.reason for refusal in refusals)
    what: list[object] = [opset] if replaced else []
    for operator in sorted(refused):
        schema = opsets.schema_at(operator, opset)
        types = kernels.of(opsets.AI_ONNX, operator, opset) or ()
        what.append((operator, schema and schema.since_version, str([sorted(one.items()) for one in types])))
    key = tuple(what)
    if key in tried:
        return False
    tried.add(key)
    return True


def _fitting(source: SourceModel, kernels: Kernels, aim: int, runtime: Runtime) -> Iterator[int]:
    """Yields the opsets at which each operator of the model has a kernel that has one anywhere, the nearest first; at
    least `aim`."""
    used = {operator for domain, operator in source.index.operators if not opsets.canonical_domain(domain)}
    highest = min(runtime.opset or opsets.latest(), opsets.latest())
    around = sorted(range(runtime.minimum, highest + 1), key=lambda opset: (abs(opset - aim), opset))
    lacking = {operator for operator in used if not _has(kernels, operator, aim)}
    hopeless = {operator for operator in lacking if not any(_has(kernels, operator, opset) for opset in around)}
    found = False
    for opset in around:
        if all(_has(kernels, operator, opset) for operator in used - hopeless):
            found = True
            yield opset
    if not found:
        yield aim


def _has(kernels: Kernels, operator: str, opset: int) -> bool:
    """Returns whether an operator exists at an opset and has a kernel there, for some dtypes; true if nobody knows."""
    return opsets.schema_at(operator, opset) is not None and kernels.has(opsets.AI_ONNX, operator, opset)
