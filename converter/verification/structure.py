# SPDX-License-Identifier: Apache-2.0
"""Compares source and result without running them: the nodes that both have, and the elements of their weights.

A conversion leaves a node as it is, or says that it did not; weights are never touched. So a node that the report does
not name has to be the same message, and a weight that both models have the same bytes: what no input shows, behind an
activation that is closed or in a row that nothing looks up, is seen here. Names, doc strings and metadata compute
nothing and are not compared.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from onnx import AttributeProto, NodeProto, TensorProto, helper

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import name_of, plain, subgraphs, used_names
from onnx_convert.model.tensors import elements_of, unequal
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import FunctionProto, GraphProto

    from onnx_convert.model.source import SourceModel
    from onnx_convert.report import Report
    from onnx_convert.verification.subjects import Subject

    Body = GraphProto | FunctionProto

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


class Structure(NamedTuple):
    """How two models compare as messages: `nodes` are the same, `rewritten` are not, in the order of the source;
    `weights` have the same bytes, `size` in all. `broken` says what is not as it has to be, with the node of the source
    around it. `suspects` are nodes of the main graph that are, or hold, others than before, `inner` those within."""

    nodes: int
    rewritten: int
    weights: int
    size: int
    broken: tuple[Broken, ...]
    suspects: tuple[NodeProto, ...]
    inner: tuple[Inner, ...]


class Inner(NamedTuple):
    """A rewritten node of a subgraph or a function, and the bodies of the result at the same place."""

    node: NodeProto
    bodies: tuple[Body, ...]


class Broken(NamedTuple):
    """What is another one although it has to be the same, and the node that it belongs to, if there is one."""

    why: str
    node: NodeProto | None


class _Place(NamedTuple):
    """A body of nodes: the way to it, and the node of the main graph or the function in which it lies."""

    path: str
    body: Body
    root: NodeProto | FunctionProto | None
    around: tuple[str, ...] = ()  # the first outputs of the nodes that hold it

    def moves(self, changed: set[str]) -> bool:
        """Returns whether its nodes may be elsewhere in the result: a node around it has become another one."""
        return not changed.isdisjoint(self.around)


def compare_structure(source: Subject, result: Subject, report: Report | None) -> Structure:
    """Compares two models as messages. What the result has to have is known from the report of the conversion; without
    one, a result that makes all values of the source is taken for a conversion of it, and its weights have to be the
    same where the nodes that use them are."""
    return _Comparison(source.source, result.source, report).outcome()


def makes_all_values(source: Subject, result: Subject) -> bool:
    """Returns whether the main graph of the result makes every value that the one of the source makes."""
    made = {name for node in result.proto.graph.node for name in node.output}
    made |= {tensor.name for tensor in result.proto.graph.initializer}
    return all(
        name in made or not name or node.op_type == "Constant"
        for node in source.proto.graph.node
        for name in node.output
    )


class _Comparison:
    """One comparison on its way."""

    def __init__(self, source: SourceModel, result: SourceModel, report: Report | None) -> None:
        self._source, self._result = source, result
        self._changed = None if report is None else _changed(source, report)
        self._nodes = self._rewritten = self._weights = self._size = 0
        self._broken: list[Broken] = []
        self._inner: list[Inner] = []
        self._suspects: dict[str, NodeProto] = {}  # by the name of their first output
        self._functions: set[Any] = set()  # that are others, or hold others

    def outcome(self) -> Structure:
        after = defaultdict(list)
        for place in _places(self._result):
            after[place.path].append(place.body)
        places = [place for place in _places(self._source) if place.path in after]
        for place in places:
            self._compare(place, after[place.path])
        self._reach_calls()
        ordered = [node for node in self._source.proto.graph.node if _first(node) in self._suspects]
        return Structure(
            self._nodes,
            self._rewritten,
            self._weights,
            self._size,
            tuple(self._broken),
            tuple(ordered),
            tuple(self._inner),
        )

    def _compare(self, place: _Place, others: list[Body]) -> None:
        makers: dict[str, list[NodeProto]] = defaultdict(list)
        weights: dict[str, list[TensorProto]] = defaultdict(list)
        for body in others:
            for node in body.node:
                makers[_first(node)].append(node)
            for tensor in _weights(body):
                weights[tensor.name].append(tensor)
        same = set()  # the values that nodes use which are the same in both
        for node in place.body.node:
            if self._is_same(node, makers[_first(node)]):
                self._nodes += 1
                same |= used_names(node)
                continue
            self._rewritten += 1
            self._suspect(node, place)
            if place.path:
                self._inner.append(Inner(node, tuple(others)))
            if self._claims(node) and (makers[_first(node)] or not place.moves(self._changed or set())):
                self._broken.append(Broken(_other_node(node, makers[_first(node)]), node))
        for tensor in _weights(place.body):
            if tensor.name not in weights:
                continue
            why = self._unlike(tensor, weights[tensor.name])
            if not why:
                self._weights += 1
                continue
            users = [node for node in place.body.node if tensor.name in used_names(node)]
            for node in users:
                self._suspect(node, place)
            if self._changed is not None or tensor.name in same:
                self._broken.append(Broken(f"initializer {plain(tensor.name)!r} {why}", next(iter(users), None)))

    def _claims(self, node: NodeProto) -> bool:
        """Returns whether the report says, by saying nothing, that a node is as it was."""
        return self._changed is not None and _first(node) not in self._changed

    def _suspect(self, node: NodeProto, place: _Place) -> None:
        if place.root is None:
            if not place.path:
                self._suspects[_first(node)] = node
        elif isinstance(place.root, NodeProto):
            self._suspects[_first(place.root)] = place.root
        else:
            self._functions.add(function_key(place.root))

    def _reach_calls(self) -> None:
        """Adds the calls of functions that hold others to the suspects."""
        grown = bool(self._functions)
        while grown:
            grown = False
            for key, function in self._source.functions.items():
                if key not in self._functions and any(self._calls(node) for node in function.node):
                    self._functions.add(key)
                    grown = True
        for node in self._source.proto.graph.node if self._functions else ():
            if self._calls(node):
                self._suspects[_first(node)] = node

    def _calls(self, node: NodeProto) -> bool:
        key = opsets.canonical_domain(node.domain), node.op_type, getattr(node, "overload", "")
        inner = (one for _, _, graph in subgraphs(node) for one in graph.node)
        return key in self._functions or any(self._calls(one) for one in inner)

    # ---- one node, one tensor

    def _is_same(self, node: NodeProto, others: list[NodeProto]) -> bool:
        return any(self._same_node(node, other) for other in others)

    def _same_node(self, node: NodeProto, other: NodeProto) -> bool:
        if (node.op_type, opsets.canonical_domain(node.domain)) != (
            other.op_type, opsets.canonical_domain(other.domain),
        ):  # fmt: skip
            return False
        if [*node.input] != [*other.input] or [*node.output] != [*other.output]:
            return False
        mine, its = ({a.name: a for a in n.attribute if a.type not in _GRAPHS} for n in (node, other))
        return mine.keys() == its.keys() and all(self._same_attribute(mine[name], its[name]) for name in mine)

    def _same_attribute(self, one: AttributeProto, other: AttributeProto) -> bool:
        if one.type == AttributeProto.TENSOR == other.type and not one.ref_attr_name and not other.ref_attr_name:
            return not self._unlike(one.t, [other.t])
        if one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True):
            return True
        if one.type != other.type or one.ref_attr_name != other.ref_attr_name or one.ref_attr_name:
            return False
        if one.type == AttributeProto.SPARSE_TENSOR:
            pairs = ((one.sparse_tensor.values, other.sparse_tensor.values),
                     (one.sparse_tensor.indices, other.sparse_tensor.indices))  # fmt: skip
            alike = [*one.sparse_tensor.dims] == [*other.sparse_tensor.dims]
            return alike and not any(self._unlike(mine, [its]) for mine, its in pairs)
        if one.type in (AttributeProto.STRING, AttributeProto.STRINGS):
            value, its = (helper.get_attribute_value(attribute) for attribute in (one, other))
            return bool(self._source.texts(value) == self._result.texts(its))
        return False

    def _unlike(self, tensor: TensorProto, others: list[TensorProto]) -> str:
        """Returns how a tensor differs from all of others; "" if it is one of them."""
        why = ""
        for other in others:
            if (found := self._differs(tensor, other)) == "":
                return ""
            why = why or found
        return why

    def _differs(self, tensor: TensorProto, other: TensorProto) -> str:
        if (tensor.data_type, [*tensor.dims]) != (other.data_type, [*other.dims]):
            return f"is {_shown(tensor)} in the source, {_shown(other)} in the result"
        try:
            whole, its = self._source.elements(tensor), self._result.elements(other)
            if whole.raw_data and whole.raw_data == its.raw_data:
                self._size += len(whole.raw_data)
                return ""
            if whole.external_data or its.external_data:  # of a message that does not tell where they are
                return ""
            mine, got = elements_of(whole), elements_of(its)
        except (InvalidModelError, OSError):  # who runs it says so
            return ""
        self._size += mine.nbytes
        wrong = unequal(mine, got)
        if not wrong.any():
            return ""
        place = tuple(int(i) for i in numpy.argwhere(wrong)[0])
        return (
            f"has other elements: {int(wrong.sum())} of {mine.size}, first at [{','.join(map(str, place))}]: "
            f"{mine[place]} in the source, {got[place]} in the result"
        )


def _places(model: SourceModel) -> Iterator[_Place]:
    """Yields the bodies of a model."""
    graph = model.proto.graph
    yield _Place("", graph, None)
    for node in graph.node:
        for body, path, around in _within(node):
            yield _Place(path, body, node, around)
    for function in model.proto.functions:
        key = "function " + " ".join(map(plain, function_key(function)))
        yield _Place(key, function, function)
        for node in function.node:
            for body, path, around in _within(node):
                yield _Place(f"{key}/{path}", body, function, around)
    for number, training in enumerate(model.proto.training_info):
        for name, body in (("initialization", training.initialization), ("algorithm", training.algorithm)):
            yield _Place(f"training {number} {name}", body, None)


def _changed(source: SourceModel, report: Report) -> set[str]:
    """Returns the first outputs of the nodes that a report names, in whichever body they are."""
    names = {name for change in report.changes for name in change.nodes}
    return {_first(node) for place in _places(source) for node in place.body.node if name_of(node) in names}


def _within(node: NodeProto) -> Iterator[tuple[GraphProto, str, tuple[str, ...]]]:
    """Yields the graphs that a node holds, nested ones as well, the way to each, and the nodes on it by their first
    outputs."""
    for index, number, graph in subgraphs(node):
        step = f"{plain(_first(node))}/{plain(node.attribute[index].name)}/{number}"
        yield graph, step, (_first(node),)
        for inner in graph.node:
            for body, path, around in _within(inner):
                yield body, f"{step}/{path}", (_first(node), *around)


def _weights(body: Body) -> Iterator[TensorProto]:
    yield from getattr(body, "initializer", ())
    for sparse in getattr(body, "sparse_initializer", ()):
        yield sparse.values


def _first(node: NodeProto) -> str:
    """Returns the first output of a node."""
    return next((name for name in node.output if name), "")


def _shown(tensor: TensorProto) -> str:
    return f"{TensorProto.DataType.Name(tensor.data_type).lower()}[{','.join(map(str, tensor.dims))}]"


def _other_node(node: NodeProto, others: list[NodeProto]) -> str:
    """Returns what became of a node of which the report says nothing."""
    name = f"{node.op_type} {plain(name_of(node))!r}"
    if not others:
        return f"{name} is gone, and the report does not say so"
    other = others[0]
    if (node.op_type, [*node.input], [*node.output]) == (other.op_type, [*other.input], [*other.output]):
        mine, its = ({a.name: a for a in one.attribute} for one in (node, other))
        names = [key for key in sorted({*mine, *its}) if _text(mine.get(key)) != _text(its.get(key))]
        what = f"the attribute {', '.join(names)}" if len(names) == 1 else f"the attributes {', '.join(names)}"
        if len(names) == 1:
            what += f" ({_text(mine.get(names[0]))} in the source, {_text(its.get(names[0]))} in the result)"
        return f"{name} has other values of {what}, and the report does not say so"
    return f"{name} is another node, and the report does not say so"


def _text(attribute: AttributeProto | None) -> str:
    if attribute is None:
        return "none"
    text = " ".join(str(helper.printable_attribute(attribute)).split())
    return text if len(text) < 60 else f"{text[:57]}..."
