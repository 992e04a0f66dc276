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
from onnx_convert.errors import InternalError, InvalidModelError
from onnx_convert.spec.types import contradicts, is_vaguer, nameless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from onnx import ModelProto, TensorProto

    from onnx_convert.analysis.view import View
    from onnx_convert.model.patch import ModelPatch, Rewrite
    from onnx_convert.model.validation import ModelIndex
    from onnx_convert.report import Report


def blame(rewrites: Iterable[Rewrite], text: str) -> tuple[str, str]:
    """The adapter and node whose name or values a finding mentions; nobody if it mentions none."""
    mentioned = set(re.findall(r"[^\s()\[\]'\":,]+", text))
    mentioned |= {word.rpartition("/")[0] for word in mentioned}  # helpers are named after their node
    for rewrite in rewrites:
        if rewrite.node in mentioned or any(name in mentioned for new in rewrite.nodes for name in new.output):
            return rewrite.adapter, rewrite.node
    return "", ""


def check(
    model: ModelProto,
    patch: ModelPatch,
    read: Callable[[TensorProto], TensorProto],
    rewrites: list[Rewrite],
    known: Mapping[str, bytes] | None,
    report: Report,
    model_index: ModelIndex,
) -> None:
    """Raises InternalError if the planned result is not valid although the source is; completes its value_info.

    `known` holds what inference found in the source's main graph, None if nobody had to ask. What our rewrites make is
    compared with it.
    """
    findings, inferred = find(view.of_result(model, patch, read))
    if findings:
        before, _ = find(view.of_source(model, read, model_index))
        if before and (mended := _without_stated_types(model, patch, read)) is not None:
            report.warnings.append(f"stated types contradict the model and are left out: {before[0]}")
            inferred, findings = mended, []
        for finding in findings:
            if _same_as_before(finding, before):
                report.warnings.append(f"the source has this fault too: {finding}")
            elif before:
                raise InvalidModelError(f"does not pass onnx's own check: {before[0]}", where=report.source)
            else:
                adapter, node = blame(rewrites, finding)
                raise InternalError(f"the result is not valid: {finding}", adapter=adapter, node=node)
    if inferred is None or known is None:
        return
    outputs = {value.name for value in model.graph.output}
    for name, by, before_type, found in _changed(inferred, rewrites, known):
        if name in patch.graph.stale_value_info:
            continue
        wrong = contradicts(found, before_type) and not _is_overcounted(model, name)
        if wrong and any(v.name == name and contradicts(v.type, before_type) for v in model.graph.value_info):
            report.warnings.append(f"the stated type of {name!r} contradicts the model and is left out")
            patch.graph.stale_value_info.add(name)
        elif wrong:
            raise InternalError(f"the type of {name!r} has changed", adapter=by.adapter, node=by.node)
        if (wrong or is_vaguer(found, before_type)) and by.makes(name):
            (patch.graph.refined if name in outputs else patch.graph.value_info).append(
                ValueInfoProto(name=name, type=nameless(before_type))
            )


def _changed(
    inferred: GraphProto, rewrites: list[Rewrite], known: Mapping[str, bytes]
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


def _without_stated_types(
    model: ModelProto, patch: ModelPatch, read: Callable[[TensorProto], TensorProto]
) -> GraphProto | None:
    """The inferred result without the types that the source states of inner values, if that is what was wrong."""
    stated = {value.name for value in model.graph.value_info} - patch.graph.stale_value_info
    patch.graph.stale_value_info |= stated
    findings, inferred = find(view.of_result(model, patch, read))
    if findings:
        patch.graph.stale_value_info -= stated
        return None
    return inferred


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


def lines_of(error: Exception) -> list[str]:
    """What an error of onnx says, a line each."""
    text = re.sub(r"^\[\w+\] Inference error\(s\): ", "", str(error).strip()) or type(error).__name__
    parts = re.split(r"\n(?=\(op_type)", text)
    return [" ".join(part.split()) for part in parts]


def _same_as_before(finding: str, before: list[str]) -> bool:
    """Findings are compared without numbers, since versions and counts appear in their texts."""
    plain = re.sub(r"\d+", "#", finding)
    return any(re.sub(r"\d+", "#", other) == plain for other in before)
