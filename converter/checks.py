# SPDX-License-Identifier: Apache-2.0
"""The whole result, once more: strict inference with type checks, and onnx's checker, on a view.

Together they are what `onnx.checker.check_model(full_check=True)` does, with one inference instead of two. What was
known of the source's values must still be known, or is written down as value_info; what contradicts it is a bug of
ours. A finding that the source has too is the source's and only a warning.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

import onnx
import onnx.checker
from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from onnx_convert import claims, inference, settling, view
from onnx_convert.errors import InternalError, InvalidModelError
from onnx_convert.facts import Facts
from onnx_convert.settling import Settled
from onnx_convert.types import contradicts, is_vaguer, nameless

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from onnx import TensorProto

    from onnx_convert.edits import ModelEdit, Rewrite
    from onnx_convert.report import Report
    from onnx_convert.structure import Census
    from onnx_convert.view import View

_LEFT_OUT: Final = "the stated type of {!r} contradicts the model and is left out"


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
    edit: ModelEdit,
    read: Callable[[TensorProto], TensorProto],
    rewrites: list[Rewrite],
    known: Mapping[str, bytes] | None,
    report: Report,
    census: Census,
    operators: Collection[tuple[str, str]] = (),
    false: Collection[str] = (),
) -> None:
    """Raises InternalError if the planned result is not valid although the source is; completes its value_info.

    `known` holds what inference found in the source's main graph, None if nobody had to ask. What our rewrites make is
    compared with it. `operators` are those of new nodes; of the values `false` the source states what is not so.
    """
    look = partial(view.of_result, model, edit, read)
    settles = settling.concerned({*census.operators, *operators}, edit.opsets)
    findings, settled = judge(look, settles=settles)
    source = _Source(model, read, census)
    if findings:
        findings, settled = _dispute(source, edit, look, report, settles=settles)
        for finding in findings:
            adapter, node = blame(rewrites, finding)
            raise InternalError(f"the result is not valid: {finding}", adapter=adapter, node=node)
    if settled is None:
        return
    for name in claims.disown(edit.graph, {*settled.false, *false}, settled.graph):
        report.warnings.append(_LEFT_OUT.format(name))
    if known is None:
        return
    graph, plain = settled.graph, settled.raw if settled.raw is not None else settled.graph
    outputs = {value.name for value in model.graph.output}
    for name, by, before, found in _changed(graph, rewrites, known):
        if name in edit.graph.forgotten or not contradicts(found, before):
            continue
        if contradicts(found, source.type_of(name) or TypeProto()):
            raise InternalError(f"the type of {name!r} has changed", adapter=by.adapter, node=by.node)
        report.warnings += map(_LEFT_OUT.format, claims.disown(edit.graph, {name}, graph))  # or follows from a claim
    true = Facts(lambda: graph)
    for name, by, before, found in _changed(plain, rewrites, known):  # where onnx, too, shall know what was known
        gone = name in edit.graph.forgotten or contradicts(found, before) or contradicts(true.type_of(name), before)
        if not gone and is_vaguer(found, before) and by.makes(name):
            (edit.graph.refined if name in outputs else edit.graph.value_info).append(
                ValueInfoProto(name=name, type=nameless(before))
            )


class _Source:
    """The source, asked for only if something is wrong."""

    def __init__(self, model: ModelProto, read: Callable[[TensorProto], TensorProto], census: Census) -> None:
        self.model = model
        self._look = partial(view.of_source, model, read, census)
        self._settles = settling.concerned(census.operators, *census.imports)
        self._facts: Facts | None = None

    def findings(self) -> list[str]:
        """What is wrong with it."""
        return judge(self._look, settles=self._settles)[0]

    def faults(self) -> list[str]:
        """What is wrong with it, whatever is claimed."""
        return _settle(claims.without(self._look().serialised()), None)[0]

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value as it follows from the operators, whatever is claimed."""
        if self._facts is None:
            bare = claims.without(self._look().serialised())
            self._facts = Facts(lambda: settling.settle(ModelProto.FromString(bare), None, claims.leniently).graph)
        return self._facts.type_of(name)


def _dispute(
    source: _Source,
    edit: ModelEdit,
    look: Callable[[], View],
    report: Report,
    *,
    settles: bool,
) -> tuple[list[str], Settled | None]:
    """Finds out who is to blame for what is wrong with the result. If it is what the source states of its values, that
    is left out with a warning; what the source has too is only a warning. Returns what is left to find, and what is
    known of the result."""
    graph = source.model.graph
    before = source.findings()
    bare = claims.without(look().serialised())
    left, settled = _settle(bare, None)  # the checker demands that outputs have shapes
    if settled is not None:
        result = settled.graph
        facts = Facts(lambda: result)
        false = claims.contradicting(graph, result)
        for name in false:
            if contradicts(facts.type_of(name), source.type_of(name) or TypeProto()):
                return [f"the type of {name!r} has changed"], settled
        report.warnings += map(_LEFT_OUT.format, claims.disown(edit.graph, false, settled.graph))
        left, again = judge(look, settles=settles)
        if again is None and claims.forget_all(edit.graph):
            report.warnings.append(f"stated types contradict the model and are left out: {left[0]}")
            left, again = judge(look, settles=settles)
        settled = again
    if (faults := source.faults()) and not any(_same_as_before(finding, faults) for finding in left):
        raise InvalidModelError(f"does not pass onnx's own check: {faults[0]}", where=report.source)
    ours = []
    for finding in left:
        if _same_as_before(finding, before):
            report.warnings.append(f"the source has this fault too: {finding}")
        elif before:
            raise InvalidModelError(f"does not pass onnx's own check: {before[0]}", where=report.source)
        else:
            ours.append(finding)
    return ours, settled


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


def find(seen: View) -> tuple[list[str], GraphProto | None]:
    """Returns what is wrong with a view, one line a finding, and its inferred graph where inference got through."""
    inferred = inference.in_stretches(seen, check=onnx.checker.check_model)
    if inferred is not None:
        return [], inferred
    findings: list[str] = []
    serialised = seen.serialised()
    try:
        inferred = inference.strictly(serialised)
    except Exception as error:  # C++ errors come as several unrelated types
        findings += lines_of(error)
    return findings + _unlawful(serialised), inferred


def judge(look: Callable[[], View], *, settles: bool) -> tuple[list[str], Settled | None]:
    """Returns what is wrong with a view, one line a finding, and what is known of it where inference got through.
    `settles` says that it has operators of which inference is not believed."""
    findings, inferred = find(look())
    if not settles:
        return findings, Settled(inferred) if inferred is not None else None
    serialised = look().serialised()
    lines, settled = _settle(serialised, inferred)
    return lines + (_unlawful(serialised) if findings else []), settled


def _unlawful(serialised: bytes) -> list[str]:
    """What the checker says."""
    try:
        onnx.checker.check_model(serialised)
    except Exception as error:  # C++ errors come as several unrelated types
        return lines_of(error)[:1]
    return []


def _settle(serialised: bytes, inferred: GraphProto | None) -> tuple[list[str], Settled | None]:
    try:
        return [], settling.settle(ModelProto.FromString(serialised), inferred, inference.strictly)
    except Exception as error:  # what the model states contradicts what is true
        return lines_of(error), None


def lines_of(error: Exception) -> list[str]:
    """What an error of onnx says, a line each."""
    text = re.sub(r"^\[\w+\] Inference error\(s\): ", "", str(error).strip()) or type(error).__name__
    parts = re.split(r"\n(?=\(op_type)", text)
    return [" ".join(part.split()) for part in parts]


def _same_as_before(finding: str, before: list[str]) -> bool:
    """Findings are compared without numbers, since versions and counts appear in their texts."""
    plain = re.sub(r"\d+", "#", finding)
    return any(re.sub(r"\d+", "#", other) == plain for other in before)
