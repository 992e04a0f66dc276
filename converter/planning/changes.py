# SPDX-License-Identifier: Apache-2.0
"""Counts what a plan changes: which nodes of the source are different or gone, and what they became.

A node that comes out equal as a message was not changed, whatever boundaries it crossed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from onnx import AttributeProto, NodeProto

from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import every_node, name_of
from onnx_convert.report import EXACT, Change
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onnx_convert.model.patch import Rewrite
    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.plan import Plan
    from onnx_convert.report import Step

    Kind = tuple[str, str, tuple[str, ...], tuple[int, ...]]  # the fields of a Change, the nodes apart


class Changes(NamedTuple):
    """The changes of a conversion: kinds of nodes, the steps that changed nodes took, the nodes of steps that are not
    exact, how many nodes of the source are different or gone, and how many stay as they are."""

    changes: list[Change]
    steps: Counter[Step]
    inexact: dict[Step, list[str]]
    changed: int
    kept: int


def changes_of(source: SourceModel, plan: Plan) -> Changes:
    """Returns what a plan changes of its source."""
    account = _Account()
    own = source.index.names
    gone = {output for node in plan.removed for output in node.output if output in own}
    for rewrite in plan.rewrites:
        value = next(filter(None, rewrite.outputs), "")
        if value in own:  # an adapter writes nodes into subgraphs, too
            account.take(rewrite, value, is_gone=value in gone)
    for nodes, outcome in ((plan.folded, ("initializer",)), (plan.removed, ())):
        for node in nodes:
            value = next(filter(None, node.output), "")
            if value in own and (not outcome or value not in gone):
                account.names_of(node, outcome)[value] = name_of(node)
    changed = sum(map(len, account.names.values()))
    total = source.index.nodes - _inlined(source, plan)
    changes = [Change(*kind, tuple(names.values())) for kind, names in account.names.items()]
    return Changes(changes, Counter(account.steps), account.inexact, changed, max(total - changed, 0))


class _Story(NamedTuple):
    """What is told alike of a rewrite and its replays: where the nodes that were changed are listed (None if these come
    out equal), and the steps that are not exact, each once."""

    names: dict[str, str] | None
    inexact: tuple[Step, ...]


class _Account:
    """The kinds of changes so far, each with the name of each node, by its first output; the steps that were taken; the
    nodes of those that are not exact."""

    def __init__(self) -> None:
        self.names: dict[Kind, dict[str, str]] = {}
        self.steps: list[Step] = []  # each as often as it was taken
        self.inexact: dict[Step, list[str]] = {}
        self._stories: dict[int, _Story] = {}

    def take(self, rewrite: Rewrite, value: str, *, is_gone: bool) -> None:
        """Adds a rewrite of the node that made a value, which may be gone since."""
        story = self._story(rewrite)
        for step in story.inexact:
            self.inexact.setdefault(step, []).append(rewrite.node)
        if story.names is None or is_gone:
            self.steps += (step for step in rewrite.steps if step.form != EXACT)
        else:
            self.steps += rewrite.steps
            story.names[value] = rewrite.node

    def names_of(self, node: NodeProto, became: tuple[str, ...], boundaries: tuple[int, ...] = ()) -> dict[str, str]:
        """Returns the list for nodes that became the same as this one."""
        kind = node.op_type, opsets.shown(opsets.canonical_domain(node.domain)), became, boundaries
        return self.names.setdefault(kind, {})

    def _story(self, rewrite: Rewrite) -> _Story:
        """Returns what is to be told of a rewrite.

        Replays of one rewrite share their tuple of steps, and what they write differs in names only: they are known by
        its identity, so that thousands of serialised nodes need not be parsed.
        """
        steps = rewrite.steps
        if not isinstance(steps, tuple) or not steps:
            return self._told(rewrite)
        story = self._stories.get(id(steps))
        if story is None:
            story = self._stories[id(steps)] = self._told(rewrite)
        return story

    def _told(self, rewrite: Rewrite) -> _Story:
        steps, node = rewrite.steps, rewrite.source
        inexact = tuple(dict.fromkeys(step for step in steps if step.form != EXACT))
        became = outcome_of(node, rewrite.nodes)
        if became is None:
            return _Story(None, inexact)
        operator = node.op_type, opsets.shown(opsets.canonical_domain(node.domain))
        crossed = (step.boundary for step in steps if step.boundary and (step.operator, step.domain) == operator)
        return _Story(self.names_of(node, became, tuple(dict.fromkeys(crossed))), inexact)


def _inlined(source: SourceModel, plan: Plan) -> int:
    """Returns the number of nodes in functions that go because they are inlined at their calls."""
    removed = plan.patch.removed_functions
    return sum(sum(1 for _ in every_node(f)) for f in source.proto.functions if function_key(f) in removed)


def outcome_of(source: NodeProto, new: Sequence[NodeProto]) -> tuple[str, ...] | None:
    """Returns the operators of the new nodes; None if there is one, equal to the source's."""
    if len(new) == 1 and _shallow(new[0]) == _shallow(source):
        return None
    return tuple(_names(new, source.op_type))


def _names(nodes: Iterable[NodeProto], operator: str) -> Iterable[str]:
    for node in nodes:
        domain = opsets.canonical_domain(node.domain)
        if node.op_type != "Constant" or operator == "Constant":
            yield f"{domain}.{node.op_type}" if domain else node.op_type


def _shallow(node: NodeProto) -> NodeProto:
    """Returns the node without its subgraphs, whose nodes are counted one by one."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    if not any(attribute.type in graphs for attribute in node.attribute):
        return node
    bare = NodeProto(input=node.input, output=node.output, op_type=node.op_type, domain=node.domain, name=node.name)
    bare.attribute.extend(attribute for attribute in node.attribute if attribute.type not in graphs)
    return bare
