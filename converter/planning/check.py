# SPDX-License-Identifier: Apache-2.0
"""Checks the whole result once more, by what onnx says of a view of it.

What was known of the source's values must still be known, or is written down as value_info; what contradicts it is a
bug of ours, unless it follows from what the source states and is not so. A finding that the source has too is the
source's and only a warning.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from onnx_convert.analysis import claims, settling, view
from onnx_convert.analysis.facts import Facts
from onnx_convert.errors import InternalError, InvalidModelError
from onnx_convert.model.graphs import subgraphs
from onnx_convert.planning.blame import blamed
from onnx_convert.planning.judging import judge, settle
from onnx_convert.planning.plan import Findings
from onnx_convert.spec import opsets
from onnx_convert.spec.types import contradicts, is_vaguer, nameless

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from onnx_convert.analysis.settling import Settled
    from onnx_convert.analysis.view import View
    from onnx_convert.model.patch import Rewrite
    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan

_NODES: Final = re.compile(r"\(op_type:([^,)]+)(?:, node name: ([^)]*))?\)")
_LEFT_OUT: Final = "the stated type of {!r} contradicts the model and is left out"


def check(source: SourceModel, plan: Plan, wanted: AbstractSet[str] = frozenset()) -> Findings:
    """Returns what has to be added to a plan, and the types of the values that are `wanted`. InternalError if its
    result is not valid although the source is, InvalidModelError if the source is not."""
    try:
        return _check(source, plan, wanted)
    except InternalError as error:
        raise blamed(source, error) from error


def _check(source: SourceModel, plan: Plan, wanted: AbstractSet[str]) -> Findings:
    if plan.doubtful:
        _judge_rewritten(source, plan)
    checking = _Checking(source, plan)
    found, settled = checking.judged()
    if found:
        found, settled = checking.dispute()
        for finding in found:
            adapter, node = blame(plan.rewrites, finding)
            raise InternalError(f"the result is not valid: {finding}", adapter=adapter, node=node)
    if settled is not None:
        checking.retract(settled.false | plan.false, settled.graph)
        if plan.known is not None:
            checking.compare(settled, plan.known)
        if wanted:
            return checking.findings._replace(types=_types(settled.graph, wanted))
    return checking.findings


def _judge_rewritten(source: SourceModel, plan: Plan) -> None:
    """Raises InvalidModelError if onnx's inference finds fault with a node that was rewritten, whatever the model
    states of its values. What it finds in others it finds in the result as well."""
    faults, _ = settle(claims.without(view.of_source(source).serialised()), None)
    for fault in faults:
        for operator, name in _NODES.findall(fault):
            for rewrite in plan.rewrites:
                if not opsets.is_known(opsets.canonical_domain(rewrite.source.domain)):
                    continue  # a function: calls that leave out outputs are too much for onnx
                if rewrite.source.op_type == operator and name in ("", rewrite.source.name):
                    where = f"{source.name}: {operator} {rewrite.node!r}"
                    raise InvalidModelError(f"does not pass onnx's own check: {fault}", where=where)


def _types(graph: GraphProto, wanted: AbstractSet[str]) -> dict[str, TypeProto]:
    """Returns the types of some values of an inferred graph and of those nested in it."""
    found = {
        value.name: value.type for value in chain(graph.input, graph.value_info, graph.output) if value.name in wanted
    }
    for node in graph.node if len(found) < len(wanted) else ():
        for _, _, nested in subgraphs(node):
            found |= _types(nested, wanted)
    return found


def blame(rewrites: Iterable[Rewrite], text: str) -> tuple[str, str]:
    """Returns the adapter and node whose name or values a finding mentions; two empty texts if it mentions none."""
    mentioned = set(re.findall(r"[^\s()\[\]'\":,]+", text))
    mentioned |= {word.rpartition("/")[0] for word in mentioned}  # helpers are named after their node
    for rewrite in rewrites:
        if rewrite.node in mentioned or any(name in mentioned for new in rewrite.nodes for name in new.output):
            return rewrite.adapter, rewrite.node
    return "", ""


class _Checking:
    """One check of a plan; `findings` grow as it goes on."""

    def __init__(self, source: SourceModel, plan: Plan) -> None:
        self.source = source
        self.plan = plan
        self.findings = Findings()
        self._concern = settling.concern(source.index.operators | plan.operators, plan.patch.opsets)
        self._facts: Facts | None = None  # of the source, whatever is claimed
        self._false: tuple[set[str], GraphProto] = set(), GraphProto()  # what is claimed and not so, and what is so

    def _look(self) -> View:
        return view.of_result(self.source, self.findings.applied(self.plan.patch))

    def judged(self) -> tuple[list[str], Settled | None]:
        """Returns what is wrong with the result as it is now, and what is known of it."""
        return judge(self._look, self._concern)

    def _warn(self, warnings: Iterable[str]) -> None:
        self.findings = self.findings._replace(warnings=[*self.findings.warnings, *warnings])

    def retract(self, false: AbstractSet[str], inferred: GraphProto) -> None:
        """Leaves out what the source states of these values of its main graph."""
        if not false:
            return
        so_far, patch = self.findings, self.plan.patch.graph
        known = {value.name for value in (*so_far.refined, *patch.refined)}.union(so_far.stale, patch.stale_value_info)
        stale, refined = claims.retract(self.source.proto.graph, false, inferred, known)
        self.findings = so_far._replace(stale=so_far.stale | stale, refined=[*so_far.refined, *refined])
        named = [value.name for value in self.source.proto.graph.value_info if value.name in stale]
        self._warn(_LEFT_OUT.format(name) for name in dict.fromkeys([*named, *(value.name for value in refined)]))

    def type_of_source(self, name: str) -> TypeProto:
        """Returns the type of a value of the source as it follows from the operators, whatever is claimed."""
        if self._facts is None:
            bare = claims.without(view.of_source(self.source).serialised())
            graph = settling.settle(ModelProto.FromString(bare), None, claims.leniently).graph
            self._facts = Facts(lambda: graph)
            self._false = claims.contradicting(self.source.proto.graph, graph), graph
        return self._facts.type_of(name) or TypeProto()

    def dispute(self) -> tuple[list[str], Settled | None]:
        """Finds out who is to blame for what is wrong with the result. If it is what the source states of its values,
        that is left out with a warning; what the source has too is only a warning. Returns what is left to find, and
        what is known of the result."""
        source = self.source
        imports = source.imports.main, *source.imports.functions
        before, _ = judge(partial(view.of_source, source), settling.concern(source.index.operators, *imports))
        bare = claims.without(self._look().serialised())
        left, settled = settle(bare, None)  # the checker demands that outputs have shapes
        if settled is not None:
            result = settled.graph
            facts = Facts(lambda: result)
            false = claims.contradicting(source.proto.graph, result)
            for name in false:
                if contradicts(facts.type_of(name), self.type_of_source(name)):
                    return [f"the type of {name!r} has changed"], settled
            self.retract(false, settled.graph)
            left, settled = self.judged()
            if settled is None and _has_statements(source):
                warning = f"stated types contradict the model and are left out: {left[0]}"
                self.findings = self.findings._replace(bare=True)
                self._warn([warning])
                left, settled = self.judged()
        faults, _ = settle(claims.without(view.of_source(source).serialised()), None)  # whatever is claimed
        if faults and not any(_same_as_before(finding, faults) for finding in left):
            raise InvalidModelError(f"does not pass onnx's own check: {faults[0]}", where=source.name)
        ours = []
        for finding in left:
            if _same_as_before(finding, before):
                self._warn([f"the source has this fault too: {finding}"])
            elif before:
                raise InvalidModelError(f"does not pass onnx's own check: {before[0]}", where=source.name)
            else:
                ours.append(finding)
        return ours, settled

    def compare(self, settled: Settled, known: Mapping[str, bytes]) -> None:
        """Adds what has to be stated because inference finds less of it in the result than it found in the source."""
        graph, plain = settled.graph, settled.raw if settled.raw is not None else settled.graph
        patch, rewrites = self.plan.patch.graph, self.plan.rewrites
        changed = _changed(graph, rewrites, known)
        for name, by, before, found in changed:
            if name in self._stale or not contradicts(found, before):
                continue
            if contradicts(found, self.type_of_source(name)):
                if name in self._false[0]:  # what is found is what is claimed
                    self.retract({name}, self._false[1])
                    continue
                if not self.findings.bare and _has_statements(self.source):  # or claimed within a nested graph
                    self.findings = self.findings._replace(bare=True)
                    left, again = self.judged()
                    if again is not None and not left:
                        self._warn([f"stated types contradict the model and are left out: the one of {name!r}"])
                        self.compare(again, known)
                        return
                raise InternalError(f"the type of {name!r} has changed", adapter=by.adapter, node=by.node)
            self.retract({name}, graph)  # or it follows from a claim
        outputs = {value.name for value in patch.graph.output if not isinstance(value, str)}
        true = Facts(lambda: graph)
        value_info: list[ValueInfoProto] = []
        refined: list[ValueInfoProto] = []
        if plain is not graph:  # onnx, too, shall know what was known
            changed = _changed(plain, rewrites, known)
        for name, by, before, found in changed:
            gone = name in self._stale or contradicts(found, before) or contradicts(true.type_of(name), before)
            if not gone and is_vaguer(found, before) and by.makes(name):
                (refined if name in outputs else value_info).append(ValueInfoProto(name=name, type=nameless(before)))
        so_far = self.findings
        self.findings = so_far._replace(value_info=value_info, refined=[*so_far.refined, *refined])

    @property
    def _stale(self) -> AbstractSet[str]:
        return self.findings.stale | self.plan.patch.graph.stale_value_info


def _changed(
    inferred: GraphProto, rewrites: Sequence[Rewrite], known: Mapping[str, bytes]
) -> list[tuple[str, Rewrite, TypeProto, TypeProto | None]]:
    """Returns the outputs of rewritten nodes of which inference now finds something else, in the order of the nodes:
    who rewrote the node, what was known, and what is found."""
    different: dict[str, TypeProto | None] = dict.fromkeys(known)
    for value in chain(inferred.value_info, inferred.output):  # what is found of an output counts
        before = known.get(value.name)
        if before is None:
            continue
        if value.type.SerializeToString() != before:
            different[value.name] = value.type
        else:
            different.pop(value.name, None)
    outputs = ((name, rewrite) for rewrite in rewrites for name in rewrite.outputs) if different else ()
    authors = {name: rewrite for name, rewrite in outputs if name in different}
    return [(name, authors[name], TypeProto.FromString(known[name]), found) for name, found in different.items()]


def _same_as_before(finding: str, before: list[str]) -> bool:
    """Compares findings without numbers, since versions and counts appear in their texts."""
    plain = re.sub(r"\d+", "#", finding)
    return any(re.sub(r"\d+", "#", other) == plain for other in before)


def _has_statements(source: SourceModel) -> bool:
    """Returns whether a model states types of inner values, or sizes of the outputs of nested graphs."""
    nested = [graph for graph in source.index.graphs if graph is not source.proto.graph]
    sizes = (value.type.tensor_type.HasField("shape") for graph in nested for value in graph.output)
    return any(graph.value_info for graph in source.index.graphs) or any(sizes)
