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
    kinds: dict[Kind, dict[str, str]] = {}  # by kind: the name of each node, by its first output
    steps: Counter[Step] = Counter()
    inexact: dict[Step, list[str]] = {}
    outcomes: dict[int, tuple[str, ...] | None] = {}
    own = source.index.names
    gone = {output for node in plan.removed for output in node.output if output in own}
    for rewrite in plan.rewrites:
        value = next(filter(None, rewrite.outputs), "")
        if value not in own:
            continue  # a node that an adapter wrote into a subgraph
        became = _outcome(rewrite, outcomes)
        for step in dict.fromkeys(rewrite.steps):
            if step.form != EXACT:
                inexact.setdefault(step, []).append(rewrite.node)
        if became is None or value in gone:
            steps.update(step for step in rewrite.steps if step.form != EXACT)
            continue
        steps.update(rewrite.steps)
        node = rewrite.source
        domain = opsets.canonical_domain(node.domain)
        crossed = dict.fromkeys(
            step.boundary
            for step in rewrite.steps
            if step.boundary and step.operator == node.op_type and step.domain == opsets.shown(domain)
        )
        kind = (node.op_type, opsets.shown(domain), became, tuple(crossed))
        kinds.setdefault(kind, {})[value] = rewrite.node
    for nodes, outcome in ((plan.folded, ("initializer",)), (plan.removed, ())):
        for node in nodes:
            value = next(filter(None, node.output), "")
            if value in own and (not outcome or value not in gone):
                domain = opsets.shown(opsets.canonical_domain(node.domain))
                kinds.setdefault((node.op_type, domain, outcome, ()), {})[value] = name_of(node)
    changed = sum(map(len, kinds.values()))
    total = source.index.nodes - _inlined(source, plan)
    changes = [Change(*kind, tuple(names.values())) for kind, names in kinds.items()]
    return Changes(changes, steps, inexact, changed, max(total - changed, 0))


def _inlined(source: SourceModel, plan: Plan) -> int:
    """Returns the number of nodes in functions that go because they are inlined at their calls."""
    removed = plan.patch.removed_functions
    return sum(sum(1 for _ in every_node(f)) for f in source.proto.functions if function_key(f) in removed)


def _outcome(rewrite: Rewrite, outcomes: dict[int, tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Returns the operators of the new nodes; None if there is one, equal to the source's.

    Replays of one rewrite share their tuple of steps, and what they write differs in names only: `outcomes` remembers
    it by identity, so that thousands of serialised nodes need not be parsed.
    """
    steps = rewrite.steps
    if not isinstance(steps, tuple) or not steps:
        return _compared(rewrite.source, rewrite.nodes)
    if id(steps) not in outcomes:
        outcomes[id(steps)] = _compared(rewrite.source, rewrite.nodes)
    return outcomes[id(steps)]


def _compared(source: NodeProto, new: Sequence[NodeProto]) -> tuple[str, ...] | None:
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
