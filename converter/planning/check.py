# SPDX-License-Identifier: Apache-2.0
"""The whole result, once more: strict inference with type checks, and onnx's checker, on a view.

Together they are what `onnx.checker.check_model(full_check=True)` does, with one inference instead of two. What was
known of the source's values must still be known, or is written down as value_info; what contradicts it is a bug of
ours. A finding that the source has too is the source's and only a warning.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

import onnx
import onnx.checker
from onnx import GraphProto, TypeProto, ValueInfoProto

from onnx_convert.analysis import inference, view
from onnx_convert.analysis.inference import lines_of
from onnx_convert.errors import InternalError, InvalidModelError
from onnx_convert.planning.plan import Findings
from onnx_convert.spec.types import contradicts, is_vaguer, nameless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onnx import ModelProto

    from onnx_convert.analysis.view import View
    from onnx_convert.model.patch import Rewrite
    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan


def check(source: SourceModel, plan: Plan) -> Findings:
    """Returns what has to be added to a plan. InternalError if its result is not valid although the source is."""
    findings, inferred = find(view.of_result(source, plan.patch))
    warnings: list[str] = []
    stale: frozenset[str] = frozenset()
    if findings:
        before, _ = find(view.of_source(source))
        stated = frozenset(value.name for value in source.proto.graph.value_info) - plan.patch.graph.stale_value_info
        mended = find(view.of_result(source, plan.patch.restated(stated))) if before else (findings, None)
        if not mended[0]:  # what the source states of inner values was wrong
            warnings.append(f"stated types contradict the model and are left out: {before[0]}")
            stale, (findings, inferred) = stated, mended
        for finding in findings:
            if _same_as_before(finding, before):
                warnings.append(f"the source has this fault too: {finding}")
            elif before:
                raise InvalidModelError(f"does not pass onnx's own check: {before[0]}", where=source.name)
            else:
                adapter, node = blame(plan.rewrites, finding)
                raise InternalError(f"the result is not valid: {finding}", adapter=adapter, node=node)
    if inferred is None or plan.known is None:
        return Findings(warnings, stale)
    return _compared(source, plan, inferred, Findings(warnings, stale))


def _compared(source: SourceModel, plan: Plan, inferred: GraphProto, so_far: Findings) -> Findings:
    """Returns what has to be stated because inference finds less of it in the result than it found in the source."""
    assert plan.known is not None
    graph = source.proto.graph
    outputs = {value.name for value in graph.output}
    warnings, stale = [*so_far.warnings], {*so_far.stale, *plan.patch.graph.stale_value_info}
    value_info: list[ValueInfoProto] = []
    refined: list[ValueInfoProto] = []
    for name, by, before, found in _changed(inferred, plan.rewrites, plan.known):
        if name in stale:
            continue
        wrong = contradicts(found, before) and not _is_overcounted(source.proto, name)
        if wrong and any(v.name == name and contradicts(v.type, before) for v in graph.value_info):
            warnings.append(f"the stated type of {name!r} contradicts the model and is left out")
            stale.add(name)
        elif wrong:
            raise InternalError(f"the type of {name!r} has changed", adapter=by.adapter, node=by.node)
        if (wrong or is_vaguer(found, before)) and by.makes(name):
            (refined if name in outputs else value_info).append(ValueInfoProto(name=name, type=nameless(before)))
    return Findings(warnings, frozenset(stale), value_info, refined)


def blame(rewrites: Iterable[Rewrite], text: str) -> tuple[str, str]:
    """Returns the adapter and node whose name or values a finding mentions; two empty texts if it mentions none."""
    mentioned = set(re.findall(r"[^\s()\[\]'\":,]+", text))
    mentioned |= {word.rpartition("/")[0] for word in mentioned}  # helpers are named after their node
    for rewrite in rewrites:
        if rewrite.node in mentioned or any(name in mentioned for new in rewrite.nodes for name in new.output):
            return rewrite.adapter, rewrite.node
    return "", ""


def _changed(
    inferred: GraphProto, rewrites: Sequence[Rewrite], known: Mapping[str, bytes]
) -> Iterator[tuple[str, Rewrite, TypeProto, TypeProto | None]]:
    """The outputs of rewritten nodes of which inference now finds something else, in the order of the nodes: who
    rewrote the node, what was known, and what is found."""
    different: dict[str, TypeProto | None] = dict.fromkeys(known)
    for value in chain(inferred.value_info, inferred.output):  # what is found of an output counts
        before = known.get(value.name)
        if before is None:
            continue
        if value.type.SerializeToString() != before:
            different[value.name] = value.type
        else:
            different.pop(value.name, None)
    authors = {name: rewrite for rewrite in rewrites for name in rewrite.outputs if name in different}
    for name, found in different.items():
        yield name, authors[name], TypeProto.FromString(known[name]), found


def _is_overcounted(model: ModelProto, name: str) -> bool:
    """Whether a value is of a pool, whose windows onnx's inference counts wrongly before opset 22."""
    producer = next((node for node in model.graph.node if name in node.output), None)
    return producer is not None and producer.op_type in ("AveragePool", "LpPool", "MaxPool")


def find(seen: View) -> tuple[list[str], GraphProto | None]:
    """What is wrong with a view: one line a finding; and its inferred graph where inference got through."""
    inferred = inference.in_chunks(seen, check=onnx.checker.check_model)
    if inferred is not None:
        return [], inferred
    findings: list[str] = []
    serialised = seen.serialised()
    try:
        inferred = inference.strictly(serialised)
    except Exception as error:  # C++ errors come as several unrelated types
        findings += lines_of(error)
    try:
        onnx.checker.check_model(serialised)
    except Exception as error:
        findings += lines_of(error)[:1]
    return findings, inferred


def _same_as_before(finding: str, before: list[str]) -> bool:
    """Findings are compared without numbers, since versions and counts appear in their texts."""
    plain = re.sub(r"\d+", "#", finding)
    return any(re.sub(r"\d+", "#", other) == plain for other in before)
