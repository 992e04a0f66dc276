# SPDX-License-Identifier: Apache-2.0
"""The few things that a model must not get wrong for its conversion to mean anything: every value is made once, every
value that is used is made somewhere, no node waits for itself, and every operator's domain is imported. Everything else
is onnx's checker's business. The one walk over all nodes that this takes also tells what the model contains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnx import GraphProto, TensorProto

from onnx_convert.errors import InvalidModelError
from onnx_convert.model import tensor_validation
from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import name_of, subgraphs
from onnx_convert.model.kinds import Kinds, Members
from onnx_convert.model.node_list import CHUNK, Chunk
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from onnx import FunctionProto, ModelProto, NodeProto

    from onnx_convert.model.kinds import Kind, Operator

    Body = GraphProto | FunctionProto

Payload = Callable[[TensorProto], int | None]
"""Tells the bytes of raw data that a tensor has elsewhere: None if it has none there, -1 if their number is not
known."""


class ModelIndex:
    """The contents of a model, subgraphs, functions and training information included: its nodes, counted; their kinds
    and the operators that they are of, by domain as it is spelled and name; every name of a node or value; its graphs;
    the chunks of the main graph."""

    def __init__(self, kinds: Kinds) -> None:
        self.nodes = 0
        self.has_negative_sizes = False  # in stated types
        self.largest = 0  # elements of a value whose sizes are stated
        self.kinds = kinds
        self.operators: set[Operator] = set()
        self.names: set[str] = set()
        self.graphs: list[GraphProto] = []
        self.chunks: list[Chunk] = []

    @property
    def simple(self) -> bool:
        """Whether no node needs to be looked into, whoever copies it."""
        return all(opsets.is_simple(operator, domain) for domain, operator in self.operators)


def examine(model: ModelProto, where: str, payload: Payload = lambda _: None, kinds: Kinds | None = None) -> ModelIndex:
    """Goes through all nodes once. InvalidModelError names what is wrong. `kinds` is told of all nodes."""
    _check_names(model, where)
    index = ModelIndex(kinds if kinds is not None else Kinds())
    walk = _Walk(index, where, payload)
    imports = _imports(model) or {opsets.AI_ONNX}  # IR versions 1 and 2 have none
    made = walk.main(model.graph, imports, overridable=model.ir_version > opsets.INPUTS_ONLY)
    for training in model.training_info:
        for graph in (training.initialization, training.algorithm):
            walk.body(graph, (made,), imports, "training/")
    defined = set()
    for function in model.functions:
        if function_key(function) in defined:
            raise InvalidModelError(f"function {function.name} is defined twice", where=where)
        defined.add(function_key(function))
        walk.body(function, (), _imports(function), f"function {function.name}/")
    _read(model, index, where)
    return index


def members(model: ModelProto, kinds: Collection[Kind]) -> list[tuple[Kind, NodeProto]]:
    """Returns all nodes of some kinds of a model that was examined before, each with its kind."""
    found = Members(kinds)
    examine(model, "", lambda _: -1, found)
    return found.nodes


def _check_names(model: ModelProto, where: str) -> None:
    """Raises for a name of a function that is no text or missing, before anybody looks one up."""
    for function in model.functions:
        for name in (function.name, function.domain, *function.input, *function.output):
            if not isinstance(name, str):
                raise InvalidModelError(f"the name {name!r} is not UTF-8", where=where)
        if not function.name:
            raise InvalidModelError("a function has no name", where=where)


def _stated(function: FunctionProto) -> Iterable[Any]:
    return getattr(function, "value_info", ())  # functions have none in older releases of onnx


def _read(model: ModelProto, index: ModelIndex, where: str) -> None:
    """Raises for a name that is no text, which protobuf hands out as bytes."""
    others = [graph.name for graph in index.graphs]
    others += [entry.domain for holder in (model, *model.functions) for entry in holder.opset_import]
    others += [name for function in model.functions for name in (function.name, function.domain, *function.attribute)]
    others += [name for operator in index.operators for name in operator]
    kinds: tuple[Iterable[Any], ...] = (index.names, others)
    for names in kinds:
        try:
            "".join(names)
        except TypeError:
            name = next(name for name in names if not isinstance(name, str))
            raise InvalidModelError(f"the name {name!r} is not UTF-8", where=where) from None


def _imports(holder: ModelProto | FunctionProto) -> set[str]:
    return {opsets.canonical_domain(entry.domain) for entry in holder.opset_import}


def _given(body: Body) -> list[str]:
    """Returns the names that a body starts with: inputs and initializers, each once."""
    if not isinstance(body, GraphProto):
        return list(body.input)
    names = [value.name for value in body.input]
    given = set(names)
    names += [name for tensor in body.initializer if (name := tensor.name) not in given]
    names += [name for tensor in body.sparse_initializer if (name := tensor.values.name) not in given]
    return names


class _Walk:
    """One walk over all nodes of a model, which fills in the index."""

    def __init__(self, index: ModelIndex, where: str, payload: Payload) -> None:
        self._index = index
        self._where = where
        self._payload = payload

    def main(self, graph: GraphProto, imports: set[str], *, overridable: bool) -> set[str]:
        """Walks over the main graph, whose initializers may be `overridable` by callers; returns the names that it
        makes."""
        self._check_statements(graph)
        self._index.kinds.begin_main(graph, overridable=overridable)
        return self._nodes(graph, (), imports, "")

    def body(self, body: Body, outer: tuple[set[str], ...], imports: set[str], path: str) -> set[str]:
        """Walks over a function, or a graph of training information; returns the names that it makes."""
        self._check_statements(body)
        self._index.kinds.begin_body()
        return self._nodes(body, outer, imports, path)

    def _check_statements(self, body: Body) -> None:
        """Raises for a tensor that cannot be, and for a stated type that cannot. One that is merely wrong is a claim
        that is not believed."""
        index = self._index
        if isinstance(body, GraphProto):
            index.graphs.append(body)
            for tensor in body.initializer:
                if wrong := tensor_validation.fault(tensor, self._payload(tensor)):
                    raise self._invalid(f"tensor {tensor.name!r}: {wrong}")
            for sparse in body.sparse_initializer:
                if wrong := tensor_validation.sparse_fault(sparse):
                    raise self._invalid(f"sparse tensor {sparse.values.name!r}: {wrong}")
        held = (body.input, body.output, body.value_info) if isinstance(body, GraphProto) else (_stated(body),)
        for values in held:
            for value in values:
                kind = value.type
                if wrong := tensor_validation.type_fault(kind):
                    raise self._invalid(f"the stated type of {value.name!r} cannot be: {wrong}")
                if tensor_validation.has_negative(kind):
                    index.has_negative_sizes = True
                index.largest = max(index.largest, tensor_validation.stated_count(kind))

    def _nodes(self, body: Body, outer: tuple[set[str], ...], imports: set[str], path: str) -> set[str]:
        """Walks over the nodes of a body or subgraph, then over the subgraphs in it; returns the names that it
        makes."""
        index, take = self._index, self._index.kinds.take
        seen = self._given(body, path)
        seen.add("")  # what is left out
        early: list[tuple[NodeProto, str]] = []
        holders: list[NodeProto] = []
        add_name = index.names.add
        holds: dict[Operator, bool] = {}
        index.nodes += len(body.node)
        is_main = isinstance(body, GraphProto) and not outer
        used: list[str] = []
        made: list[str] = []
        for number, node in enumerate(body.node, 1):
            add_name(node.name)
            operator = node.domain, node.op_type
            if operator not in holds:
                holds[operator] = self._may_hold_graphs(node, imports, path)
            if holds[operator]:
                holders.append(node)
            inputs = node.input[:]  # an iterator costs more than a list
            for name in inputs:
                if name not in seen and not any(name in around for around in outer):
                    early.append((node, name))
            outputs = node.output[:]
            for name in outputs:
                if name not in seen:
                    seen.add(name)
                elif name:
                    raise self._invalid(f"{path}{name!r} is made twice, by {_shown(node)} too")
            take(node, operator, inputs, outputs)
            if is_main:
                used += inputs
                made += outputs
                if number % CHUNK == 0:
                    index.chunks.append(Chunk(number - CHUNK, used, made))
                    used, made = [], []
        if used or made:
            index.chunks.append(Chunk(CHUNK * len(index.chunks), used, made))
        index.names |= seen
        index.names.update(value.name for value in getattr(body, "value_info", ()))  # no new value has a type already
        index.operators.update(holds)
        if early:
            _explain(body, early, seen, self._where, path)
        for value in body.output:
            name = value if isinstance(value, str) else value.name
            if name not in seen and name and not any(name in around for around in outer):
                raise self._invalid(f"{path}{name!r}, an output, is not made anywhere")
        for node in holders:
            for _, _, graph in subgraphs(node):
                self._check_statements(graph)
                with index.kinds.inside(graph):
                    self._nodes(graph, (*outer, seen), imports, f"{path}{node.name or node.op_type}/")
        return seen

    def _given(self, body: Body, path: str) -> set[str]:
        """Returns the names that a body starts with: inputs and initializers, each once."""
        if not isinstance(body, GraphProto):
            names = list(body.input)
        else:
            names = [value.name for value in body.input]
            inputs = set(names)
            names += [name for tensor in body.initializer if (name := tensor.name) not in inputs]
            names += [name for tensor in body.sparse_initializer if (name := tensor.values.name) not in inputs]
        given = set(names)
        if len(given) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self._invalid(f"{path}{twice!r} is an input or initializer twice")
        return given

    def _may_hold_graphs(self, node: NodeProto, imports: set[str], path: str) -> bool:
        """Returns whether nodes of the operator of a node may; raises if there cannot be any."""
        if not all(isinstance(name, str) for name in (node.domain, node.op_type)):
            raise self._invalid(f"{path}the name {(node.domain, node.op_type)!r} of an operator is not UTF-8")
        if not node.op_type:
            raise self._invalid(f"{path}node {name_of(node)!r} has no operator")
        domain = opsets.canonical_domain(node.domain)
        if domain not in imports:
            raise self._invalid(f"{path}{_shown(node)}: {opsets.shown(domain)} is not imported")
        return opsets.may_hold_graphs(node.op_type, domain)

    def _invalid(self, what: str) -> InvalidModelError:
        return InvalidModelError(what, where=self._where)


def _explain(body: Body, early: Iterable[tuple[NodeProto, str]], made: set[str], where: str, path: str) -> None:
    """Raises for a value that nobody makes, and for a cycle; a graph that is merely out of order may pass."""
    for node, name in early:
        if name not in made:
            raise InvalidModelError(f"{path}{name!r}, an input of {_shown(node)}, is not made anywhere", where=where)
    nodes = list(body.node)
    producers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{producers[name] for name in node.input if name in producers} for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for index, others in enumerate(needs):
        for other in others:
            users[other].append(index)
    ready = [index for index, others in enumerate(needs) if not others]
    while ready:
        done = ready.pop()
        for index in users[done]:
            needs[index].discard(done)
            if not needs[index]:
                ready.append(index)
    stuck = next((node for node, others in zip(nodes, needs, strict=True) if others), None)
    if stuck is not None:
        raise InvalidModelError(f"{path}the graph has a cycle through {_shown(stuck)}", where=where)


def _shown(node: NodeProto) -> str:
    return f"{node.op_type} {name_of(node)!r}"
