# SPDX-License-Identifier: Apache-2.0
"""Keeps one place of each kind of rewrite to be shown: its nodes before and after, those around them, their types.

Collected only when a report with pictures is asked for: the nodes are looked through once, for the neighbours of the
few that are shown. Types come from the check of the result, which has to infer them anyway.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import FunctionProto, GraphProto, TensorProto, TypeProto

from onnx_convert.model import text
from onnx_convert.model.graphs import bodies, every_node, name_of, plain, subgraphs
from onnx_convert.model.tensors import tensor_of
from onnx_convert.planning.changes import outcome_of
from onnx_convert.report import DrawnNode, DrawnValue, Example, Scene
from onnx_convert.spec import opsets
from onnx_convert.spec.types import tensor_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from onnx import NodeProto

    from onnx_convert.model.source import SourceModel
    from onnx_convert.planning.changes import Kind
    from onnx_convert.planning.plan import Plan
    from onnx_convert.report import Step

    Body = GraphProto | FunctionProto

_AROUND: Final = 4  # neighbours that are shown before, and after


class Changed(NamedTuple):
    """A node of the source that was rewritten, folded or removed: its first output, its name, what it became in which
    steps."""

    kind: Kind
    value: str
    name: str
    node: NodeProto
    steps: Sequence[Step] = ()
    new: Sequence[NodeProto] = ()


def every_changed(source: SourceModel, plan: Plan) -> Iterator[Changed]:
    """Yields the nodes that a plan rewrites, folds or removes; replays of a rewrite share their steps and outcome."""
    outcomes: dict[int, tuple[str, ...] | None] = {}
    own = source.index.names
    gone = {output for node in plan.removed for output in node.output if output in own}
    for rewrite in plan.rewrites:
        value = next(filter(None, rewrite.outputs), "")
        node, steps = rewrite.source, rewrite.steps
        if value not in own or value in gone:
            continue  # it is of a subgraph that an adapter wrote, or is told of below
        shared = isinstance(steps, tuple) and bool(steps)
        if not shared or id(steps) not in outcomes:
            outcomes[id(steps)] = outcome_of(node, rewrite.nodes)
        became = outcomes[id(steps)]
        if became is not None:
            operator = node.op_type, opsets.shown(opsets.canonical_domain(node.domain))
            crossed = (step.boundary for step in steps if step.boundary and (step.operator, step.domain) == operator)
            yield Changed((*operator, became, tuple(dict.fromkeys(crossed))), value, rewrite.node, node, steps,
                          rewrite.nodes)  # fmt: skip
    for nodes, outcome in ((plan.folded, ("initializer",)), (plan.removed, ())):
        for node in nodes:
            value = next(filter(None, node.output), "")
            if value in own and (not outcome or value not in gone):
                domain = opsets.shown(opsets.canonical_domain(node.domain))
                yield Changed((node.op_type, domain, outcome, ()), value, name_of(node), node)


class _Group(NamedTuple):
    """Nodes of one kind that took the same steps; the first of them is shown."""

    kind: Kind
    first: Changed
    names: dict[str, str]  # by first output


class _Place(NamedTuple):
    """A body, the way to it, and who makes and uses the values that are shown."""

    body: Body
    path: str
    producers: dict[str, NodeProto]
    consumers: dict[str, list[NodeProto]]


class Examples:
    """The examples of a plan. `values` are the names of which types are wanted."""

    def __init__(self, source: SourceModel, plan: Plan) -> None:
        self._plan = plan
        self._source = source
        self._groups: dict[tuple[object, ...], _Group] = {}
        self._rewritten: dict[str, Changed] = {}
        keys: dict[int, tuple[object, ...]] = {}
        for one in every_changed(source, plan):
            self._rewritten[one.value] = one
            identity = id(one.steps)
            if identity not in keys or not isinstance(one.steps, tuple):
                keys[identity] = tuple((s.operator, s.domain, s.boundary, s.rewrite, s.form) for s in one.steps)
            group = self._groups.setdefault((one.kind, keys[identity]), _Group(one.kind, one, {}))
            group.names[one.value] = one.name
        self._places = {id(group.first.node): place for group, place in self._located()}
        self._scenes = [self._drawn(group) for group in self._groups.values()]
        self.values: AbstractSet[str] = {
            name
            for scenes in self._scenes
            for scene in scenes
            for node in (*scene.nodes, *scene.around)
            for name in (*node.inputs, *node.outputs)
            if name
        }

    # ---- where they stand

    def _located(self) -> Iterator[tuple[_Group, _Place]]:
        """Yields each group with the place of the node that is shown, its neighbours known."""
        wanted = {id(group.first.node): group for group in self._groups.values()}
        for body, path in bodies(self._source.proto):
            here = [wanted[id(node)] for node in body.node if id(node) in wanted]
            if not here:
                continue
            names = {name for group in here for name in (*group.first.node.input, *group.first.node.output)} - {""}
            place = _Place(body, path, {}, {})
            for node in body.node:
                for name in node.output:
                    if name in names:
                        place.producers[name] = node
                for name in node.input:
                    if name in names:
                        place.consumers.setdefault(name, []).append(node)
            yield from ((group, place) for group in here)

    # ---- scenes

    def _drawn(self, group: _Group) -> tuple[Scene, Scene]:
        node, place = group.first.node, self._places.get(id(group.first.node))
        new = [one for one in group.first.new if one.op_type != "Constant" or len(group.first.new) == 1]
        before, after = [_drawn_node(node)], [_drawn_node(one) for one in new]
        if place is None:
            return Scene(tuple(before)), Scene(tuple(after))
        neighbours: dict[int, NodeProto] = {}
        for name in node.input:
            if (producer := place.producers.get(name)) is not None and tensor_of_constant(producer) is None:
                neighbours.setdefault(id(producer), producer)
        nearer = len(neighbours)
        for name in node.output:
            for user in place.consumers.get(name, ()):
                neighbours.setdefault(id(user), user)
        shown = [*neighbours.values()]
        more = max(len(shown) - nearer - _AROUND, 0) + max(nearer - _AROUND, 0)
        shown = [*shown[:nearer][:_AROUND], *shown[nearer:][:_AROUND]]
        values = {*node.input, *node.output} - {""}
        now = [one for neighbour in shown for one in self._became(neighbour, values)]
        around = tuple(_drawn_node(one) for one in shown)
        return Scene(tuple(before), around, more), Scene(tuple(after), tuple(map(_drawn_node, now)), more)

    def _became(self, node: NodeProto, values: AbstractSet[str]) -> Iterable[NodeProto]:
        """Returns the nodes that stand next to these values where a node stood in the source."""
        changed = self._rewritten.get(next(filter(None, node.output), ""))
        if changed is None:
            return [node]
        return [new for new in changed.new if not values.isdisjoint((*new.input, *new.output))]

    # ---- what is reported

    def told(self, kinds: Sequence[Kind], types: Mapping[str, TypeProto]) -> list[Example]:
        """Returns the examples. `kinds` are those of the report's changes, in order."""
        found = []
        for group, (before, after) in zip(self._groups.values(), self._scenes, strict=True):
            place = self._places.get(id(group.first.node))
            values = self._values((before, after), place, group.first, types)
            steps: tuple[Step, ...] = tuple(group.first.steps)
            names = tuple(group.names.values())
            path = place.path if place is not None else ""
            found.append(Example(kinds.index(group.kind), steps, names, path, before, after, values))
        return sorted(found, key=lambda example: example.change)

    def _values(
        self, scenes: Iterable[Scene], place: _Place | None, changed: Changed, types: Mapping[str, TypeProto]
    ) -> dict[str, DrawnValue]:
        nodes = [node for scene in scenes for node in (*scene.nodes, *scene.around)]
        wanted = dict.fromkeys(name for node in nodes for name in (*node.inputs, *node.outputs) if name)
        body = place.body if place is not None else None
        roles: dict[str, str] = {}
        if isinstance(body, GraphProto):
            roles |= {value.name: "input" for value in body.input} | {value.name: "output" for value in body.output}
        elif body is not None:
            roles |= dict.fromkeys(body.input, "input") | dict.fromkeys(body.output, "output")
        tensors = self._tensors(wanted.keys(), place, changed)
        found = {}
        for name in wanted:
            tensor = tensors.get(name)
            kind = tensor_type(tensor.data_type, tensor.dims) if tensor is not None else types.get(name)
            elements = text.elements_text(tensor) if tensor is not None else ""
            role = "initializer" if tensor is not None else roles.get(name, "")
            found[name] = DrawnValue(text.type_text(kind), elements, role)
        return found

    def _tensors(self, wanted: AbstractSet[str], place: _Place | None, changed: Changed) -> dict[str, TensorProto]:
        """Returns the constants among some values: of the source, of the plan, and of Constant nodes."""
        graphs = self._source.index.graphs
        patches = [patch for body in self._plan.patch.bodies for patch in body.walk()]
        listed = [tensor for graph in graphs for tensor in graph.initializer if tensor.name in wanted]
        listed += [tensor for patch in patches for tensor in patch.constants if tensor.name in wanted]
        found = {tensor.name: tensor for tensor in listed}
        for node in (*(place.producers.values() if place is not None else ()), *changed.new):
            tensor = tensor_of_constant(node)
            if tensor is not None and node.output and node.output[0] in wanted:
                found[node.output[0]] = tensor
        return found


def counted(nodes: Iterable[NodeProto]) -> dict[str, int]:
    """Returns how many nodes of each operator there are, by name; Constant nodes apart."""
    counts = Counter((node.domain, node.op_type) for node in nodes)
    named: Counter[str] = Counter()
    for (domain, operator), count in counts.items():
        named[f"{domain}.{operator}" if domain not in ("", "ai.onnx") else operator] += count
    return dict(sorted(named.items()))


def operators_before(source: SourceModel) -> dict[str, int]:
    """Returns how many nodes of each operator the source has."""
    model = source.proto
    heads: list[Body] = [model.graph, *model.functions]
    heads += [g for training in model.training_info for g in (training.initialization, training.algorithm)]
    return counted(node for body in heads for node in every_node(body))


def operators_after(plan: Plan) -> dict[str, int]:
    """Returns how many nodes of each operator the result has."""

    def every() -> Iterator[NodeProto]:
        for patch in (patch for body in plan.patch.bodies for patch in body.walk()):
            known = {id(child.graph) for child in patch.children}
            for node in patch.nodes.passing():
                yield node
                for _, _, graph in subgraphs(node):
                    if id(graph) not in known:
                        yield from every_node(graph)

    return counted(every())


def tensor_of_constant(node: NodeProto) -> TensorProto | None:
    """Returns the tensor of a Constant node; None for any other."""
    return tensor_of(node) if node.op_type == "Constant" and node.domain in ("", "ai.onnx") else None


def _drawn_node(node: NodeProto) -> DrawnNode:
    pairs = {plain(attribute.name): text.attribute_text(attribute) for attribute in node.attribute}
    inputs, outputs = (tuple(map(plain, names)) for names in (node.input, node.output))
    return DrawnNode(text.operator(node), plain(node.name), inputs, outputs, pairs)
