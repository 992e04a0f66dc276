# SPDX-License-Identifier: Apache-2.0
"""The few things that a model must not get wrong for its conversion to mean anything: every value is made once, every
value that is used is made somewhere, no node waits for itself, and every operator's domain is imported. Everything else
is onnx's checker's business."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import GraphProto

from onnx_convert import opsets
from onnx_convert.edits import STRETCH, Stretch, function_key
from onnx_convert.errors import InvalidModelError
from onnx_convert.facts import name_of, subgraphs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import FunctionProto, ModelProto, NodeProto

    Body = GraphProto | FunctionProto


class Census:
    """What a model consists of, subgraphs, functions and training information included: its nodes, counted; the
    operators that they are of, by domain as it is spelled and name; every name of a node or value; its graphs; the
    stretches of the main graph."""

    def __init__(self) -> None:
        self.nodes = 0
        self.operators: set[tuple[str, str]] = set()
        self.names: set[str] = set()
        self.imports: list[dict[str, int]] = []  # the opsets of the model, and of each function
        self.graphs: list[GraphProto] = []
        self.stretches: list[Stretch] = []

    @property
    def simple(self) -> bool:
        """Whether no node needs to be looked into, whoever copies it."""
        return all(opsets.is_simple(operator, domain) for domain, operator in self.operators)


def examine(model: ModelProto, where: str) -> Census:
    """Goes through all nodes once. InvalidModelError names what is wrong."""
    census = Census()
    imports = _imports(model) or {opsets.AI_ONNX}  # IR versions 1 and 2 have none
    for holder in (model, *model.functions):
        census.imports.append({opsets.normalise(entry.domain): entry.version for entry in holder.opset_import})
    made = _body(model.graph, (), imports, census, where, "")
    for training in model.training_info:
        for graph in (training.initialization, training.algorithm):
            _body(graph, (made,), imports, census, where, "training/")
    defined = set()
    for function in model.functions:
        if function_key(function) in defined:
            raise InvalidModelError(f"function {function.name} is defined twice", where=where)
        defined.add(function_key(function))
        _body(function, (), _imports(function), census, where, f"function {function.name}/")
    _read(model, census, where)
    return census


def _read(model: ModelProto, census: Census, where: str) -> None:
    """Raises for a name that is no text, which protobuf hands out as bytes."""
    others = [graph.name for graph in census.graphs]
    others += [entry.domain for holder in (model, *model.functions) for entry in holder.opset_import]
    others += [name for function in model.functions for name in (function.name, function.domain, *function.attribute)]
    others += [name for operator in census.operators for name in operator]
    kinds: tuple[Iterable[Any], ...] = (census.names, others)
    for names in kinds:
        try:
            "".join(names)
        except TypeError:
            name = next(name for name in names if not isinstance(name, str))
            raise InvalidModelError(f"the name {name!r} is not UTF-8", where=where) from None


def _imports(holder: ModelProto | FunctionProto) -> set[str]:
    return {opsets.normalise(entry.domain) for entry in holder.opset_import}


def _given(body: Body) -> list[str]:
    """The names that a body starts with: inputs and initializers, each once."""
    if not isinstance(body, GraphProto):
        return list(body.input)
    names = [value.name for value in body.input]
    given = set(names)
    names += [name for tensor in body.initializer if (name := tensor.name) not in given]
    names += [name for tensor in body.sparse_initializer if (name := tensor.values.name) not in given]
    return names


def _body(
    body: Body, outer: tuple[set[str], ...], imports: set[str], census: Census, where: str, path: str
) -> set[str]:
    """The names that a body makes."""
    given = _given(body)
    seen = set(given)
    if len(seen) != len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InvalidModelError(f"{path}{twice!r} is an input or initializer twice", where=where)
    seen.add("")  # what is left out
    early: list[tuple[NodeProto, str]] = []
    holders: list[NodeProto] = []
    names = census.names
    holds: dict[tuple[str, str], bool] = {}
    census.nodes += len(body.node)
    if isinstance(body, GraphProto):
        census.graphs.append(body)
    is_main = isinstance(body, GraphProto) and not outer
    used: list[str] = []
    made: list[str] = []
    for index, node in enumerate(body.node, 1):
        names.add(node.name)
        operator = node.domain, node.op_type
        if operator not in holds:
            domain = opsets.normalise(node.domain)
            if domain not in imports:
                raise InvalidModelError(f"{path}{_shown(node)}: {opsets.shown(domain)} is not imported", where=where)
            holds[operator] = opsets.may_hold_graphs(node.op_type, domain)
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
                raise InvalidModelError(f"{path}{name!r} is made twice, by {_shown(node)} too", where=where)
        if is_main:
            used += inputs
            made += outputs
            if index % STRETCH == 0:
                census.stretches.append(Stretch(index - STRETCH, used, made))
                used, made = [], []
    if used or made:
        census.stretches.append(Stretch(STRETCH * len(census.stretches), used, made))
    names |= seen.union(value.name for value in getattr(body, "value_info", ()))  # no new value has a type already
    census.operators.update(holds)
    if early:
        _explain(body, early, seen, where, path)
    for value in body.output:
        name = value if isinstance(value, str) else value.name
        if name not in seen and name and not any(name in around for around in outer):
            raise InvalidModelError(f"{path}{name!r}, an output, is not made anywhere", where=where)
    for node in holders:
        for _, _, graph in subgraphs(node):
            _body(graph, (*outer, seen), imports, census, where, f"{path}{node.name or node.op_type}/")
    return seen


def _explain(body: Body, early: Iterable[tuple[NodeProto, str]], made: set[str], where: str, path: str) -> None:
    """Raises for a value that nobody makes, and for a cycle; a graph that is merely out of order may pass."""
    for node, name in early:
        if name not in made:
            raise InvalidModelError(f"{path}{name!r}, an input of {_shown(node)}, is not made anywhere", where=where)
    nodes = list(body.node)
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    needs = [{makers[name] for name in node.input if name in makers} for node in nodes]
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
