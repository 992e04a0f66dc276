# SPDX-License-Identifier: Apache-2.0
"""Finds the first value that source and result both compute, by its name, and that differs.

A value that agrees clears all that it was made from. So the values in question shrink with every look at a few of them,
spread over the way, and a model of thousands of nodes takes a few runs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy

from onnx_convert.model.graphs import name_of, used_names
from onnx_convert.model.tensors import elements_of
from onnx_convert.rewrite import registry
from onnx_convert.rewrite.registry import Adapter
from onnx_convert.spec import opsets
from onnx_convert.verification.evaluators import LacksError, RunError, opset_of
from onnx_convert.verification.outcome import FirstDifference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import ModelProto, NodeProto

    from onnx_convert.report import Report
    from onnx_convert.verification.judging import Judge
    from onnx_convert.verification.subjects import Program, Subject

    Feeds = Mapping[str, Any]

_AT_ONCE: Final = 32  # values that are looked at in one run


class Found(NamedTuple):
    """The first value that differs, why, what both computed, the nodes between it and values that agree, and these."""

    value: str
    why: str
    source: Sequence[NodeProto]
    result: Sequence[NodeProto]
    known: Mapping[str, Any]  # values that agree, by name, as the source computed them
    expected: Any
    got: Any
    other_weight: str = ""  # an initializer that these nodes use, if it is another one in the result

    @property
    def node(self) -> NodeProto:
        """The node of the source that makes the value."""
        return self.source[-1]

    @property
    def untouched(self) -> bool:
        """Whether the nodes are the same in both models, and so are their weights."""
        return self._same_nodes and not self.other_weight

    @property
    def _same_nodes(self) -> bool:
        one, other = ([node.SerializeToString(deterministic=True) for node in m] for m in (self.source, self.result))
        return one == other

    @property
    def rewritten(self) -> bool:
        """Whether other nodes make the value in the result."""
        return not self._same_nodes


class Graph:
    """The main graph of a model: who makes a value, and from what."""

    def __init__(self, model: ModelProto) -> None:
        self.nodes = list(model.graph.node)
        self.producers = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}
        self.needs = [used_names(node) for node in self.nodes]

    def before(self, value: str) -> set[str]:
        """Returns all values that a value is made from."""
        found: set[str] = set()
        waiting = [value]
        while waiting:
            producer = self.producers.get(waiting.pop())
            if producer is not None:
                fresh = self.needs[producer] - found
                found |= fresh
                waiting += fresh
        return found

    def between(self, value: str, known: set[str]) -> list[NodeProto]:
        """Returns the nodes that make a value from known ones, in order."""
        taken: set[int] = set()
        waiting = [value]
        while waiting:
            name = waiting.pop()
            producer = self.producers.get(name)
            if producer is not None and producer not in taken and (name == value or name not in known):
                taken.add(producer)
                waiting += self.needs[producer]
        return [self.nodes[i] for i in sorted(taken)]


def first_difference(
    source: Subject, result: Subject, judge: Judge, feeds: Feeds, output: str, *, edge: bool = False
) -> Found | None:
    """Returns the first value that differs on the way to an output; None if the models do not run with more outputs."""
    before, after = Graph(source.proto), Graph(result.proto)
    given = {value.name for value in source.proto.graph.input}
    common = {name for name in before.producers if name in after.producers and name not in judge.random}
    looks = _Looks(source, result, judge, feeds, edge=edge)
    suspect, open_ones = output, (before.before(output) & common) - {output}
    try:
        while open_ones:
            ordered = sorted(open_ones, key=lambda name: (before.producers[name], name))
            chosen = _spread(ordered)
            looks.at(chosen)
            wrong = next((name for name in chosen if name in looks.wrong), None)
            if wrong is not None:
                suspect, open_ones = wrong, open_ones & before.before(wrong)
            cleared = {name for name in chosen if name not in looks.wrong}
            for name in cleared:
                open_ones = open_ones - before.before(name)
            open_ones -= {*chosen}
        nodes = before.between(suspect, common | given)
        needed = {name for node in nodes for name in used_names(node)} & common
        looks.at([suspect, *needed])
    except (RunError, LacksError):
        return None
    if suspect not in looks.wrong:
        return None
    agree = {name: value for name, (value, _) in looks.values.items() if name not in looks.wrong}
    agree |= {name: feeds[name] for name in given if name in feeds}
    known = set(agree)
    made, became = before.between(suspect, known), after.between(suspect, known)
    used = {name for node in (*made, *became) for name in used_names(node)} & known
    expected, got = looks.values[suspect]
    other = _other_weight(source, result, {name for node in made for name in used_names(node)})
    known_values = {name: agree[name] for name in sorted(used)}
    return Found(suspect, looks.wrong[suspect], made, became, known_values, expected, got, other)


def _other_weight(source: Subject, result: Subject, names: set[str]) -> str:
    """Returns an initializer of both models, of these names, that has other elements in the result; "" if none has."""
    after = {tensor.name: tensor for tensor in result.proto.graph.initializer if tensor.name in names}
    for tensor in source.proto.graph.initializer:
        if tensor.name in after:
            one, other = source.source.elements(tensor), result.source.elements(after[tensor.name])
            if not numpy.array_equal(elements_of(one), elements_of(other), equal_nan=False):
                return str(tensor.name)
    return ""


def identified(found: Found, source: ModelProto, result: ModelProto, report: Report | None) -> FirstDifference:
    """Returns who made the value that differs, and by which adapters that node was rewritten."""
    node = found.node
    adapter = ", ".join(_adapters(node, source, result, report)) if found.rewritten else ""
    became = tuple(one.op_type for one in found.result) if found.rewritten else ()
    weight = f"; initializer {found.other_weight!r} has other elements" if found.other_weight else ""
    return FirstDifference(found.value, _shown(node), name_of(node), adapter, became, found.why + weight)


def _shown(node: NodeProto) -> str:
    domain = opsets.canonical_domain(node.domain)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _adapters(node: NodeProto, source: ModelProto, result: ModelProto, report: Report | None) -> list[str]:
    """Returns the adapters that crossed the node's boundaries, `Softmax@13 normalise_trailing_axes`: of the report, or
    those that are registered."""
    domain = opsets.canonical_domain(node.domain)
    if report is not None:
        steps = [s for s in report.steps if (s.operator, opsets.canonical_domain(s.domain)) == (node.op_type, domain)]
        return [f"{_shown(node)}@{step.boundary} {step.rewrite}" for step in steps]
    start, stop = (_version(model, domain) for model in (source, result))
    names = []
    for boundary, direction in registry.crossings(domain, node.op_type, start, stop):
        if isinstance(decided := registry.decision(node.op_type, boundary, direction, domain), Adapter):
            names.append(f"{_shown(node)}@{boundary} {decided.name}")
    return names


def _version(model: ModelProto, domain: str) -> int:
    if not domain:
        return opset_of(model)
    return max((entry.version for entry in model.opset_import if entry.domain == domain), default=0)


def _spread(names: list[str]) -> list[str]:
    """Returns some of many, evenly spread, the last among them."""
    if len(names) <= _AT_ONCE:
        return names
    return [names[(i + 1) * len(names) // _AT_ONCE - 1] for i in range(_AT_ONCE)]


class _Looks:
    """Looks at values of both models on the same inputs."""

    def __init__(self, source: Subject, result: Subject, judge: Judge, feeds: Feeds, *, edge: bool) -> None:
        self._edge = edge
        self._subjects = source, result
        self._judge = judge
        self._feeds = feeds
        self.wrong: dict[str, str] = {}
        self.values: dict[str, tuple[Any, Any]] = {}

    def at(self, names: Sequence[str]) -> None:
        """Looks at some values; what was seen before is not computed again."""
        names = [name for name in names if name not in self.values]
        if not names:
            return
        one, other = (_computed(subject, names, self._feeds) for subject in self._subjects)
        for name in names:
            self.values[name] = one[name], other[name]
            judged = self._judge.output(name, one[name], other[name], edge=self._edge)
            if not judged.agrees:
                self.wrong[name] = judged.why


def _computed(subject: Subject, names: Sequence[str], feeds: Feeds) -> dict[str, Any]:
    own = [value.name for value in subject.proto.graph.output]
    more = [name for name in names if name not in own]
    values = _run(subject, more, feeds)
    return dict(zip([*own, *more], values, strict=True))


def _run(subject: Subject, more: Sequence[str], feeds: Feeds) -> list[Any]:
    program: Program = subject.program(more=more)
    with suppress(LacksError):
        return program.run(feeds)
    return subject.program(("onnx.reference",), more).run(feeds)
