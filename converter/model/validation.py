# SPDX-License-Identifier: Apache-2.0
"""The few things that a model must not get wrong for its conversion to mean anything: every value is made once, every
value that is used is made somewhere, no node waits for itself, and every operator's domain is imported. Everything else
is onnx's checker's business."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import GraphProto

from onnx_convert.errors import InvalidModelError
from onnx_convert.model import tensor_validation
from onnx_convert.model.functions import function_key
from onnx_convert.model.graphs import name_of, subgraphs
from onnx_convert.model.node_list import CHUNK, Chunk
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from onnx import FunctionProto, ModelProto, NodeProto, TensorProto

    Body = GraphProto | FunctionProto


class ModelIndex:
    """The contents of a model, subgraphs, functions and training information included: its nodes, counted; the
    operators that they are of, by domain as it is type_str and name; every name of a node or value; its graphs; the
    chunks of the main graph."""

    def __init__(self) -> None:
        self.nodes = 0
        self.has_negative_sizes = False  # in stated types
        self.largest = 0  # elements of a value whose sizes are stated
        self.operators: set[tuple[str, str]] = set()
        self.names: set[str] = set()
        self.graphs: list[GraphProto] = []
        self.chunks: list[Chunk] = []

    @property
    def simple(self) -> bool:
        """Whether no node needs to be looked into, whoever copies it."""
        return all(opsets.is_simple(operator, domain) for domain, operator in self.operators)


def examine(model: ModelProto, where: str, payload: Callable[[TensorProto], int | None] = lambda _: None) -> ModelIndex:
    """Goes through all nodes once. InvalidModelError names what is wrong. `payload` tells the bytes of raw data that a
    tensor has elsewhere, None if it has none there, -1 if their number is not known."""
    _check_names(model, where)
    model_index = ModelIndex()
    imports = _imports(model) or {opsets.AI_ONNX}  # IR versions 1 and 2 have none
    made = _body(model.graph, (), imports, model_index, where, "")
    for training in model.training_info:
        for graph in (training.initialization, training.algorithm):
            _body(graph, (made,), imports, model_index, where, "training/")
    defined = set()
    for function in model.functions:
        if function_key(function) in defined:
            raise InvalidModelError(f"function {function.name} is defined twice", where=where)
        defined.add(function_key(function))
        _body(function, (), _imports(function), model_index, where, f"function {function.name}/")
    _read(model, model_index, where)
    for graph in model_index.graphs:
        _check_tensors(graph, where, payload)
        _check_statements(graph, where, model_index)
    for function in model.functions:
        _check_statements(function, where, model_index)
    return model_index


def _check_names(model: ModelProto, where: str) -> None:
    """Raises for a name of a function that is no text, before anybody looks one up."""
    for function in model.functions:
        for name in (function.name, function.domain, *function.input, *function.output):
            if not isinstance(name, str):
                raise InvalidModelError(f"the name {name!r} is not UTF-8", where=where)


def _check_tensors(graph: GraphProto, where: str, payload: Callable[[TensorProto], int | None]) -> None:
    for tensor in graph.initializer:
        if wrong := tensor_validation.fault(tensor, payload(tensor)):
            raise InvalidModelError(f"tensor {tensor.name!r}: {wrong}", where=where)
    for sparse in graph.sparse_initializer:
        if wrong := tensor_validation.sparse_fault(sparse):
            raise InvalidModelError(f"sparse tensor {sparse.values.name!r}: {wrong}", where=where)


def _check_statements(body: Body, where: str, model_index: ModelIndex) -> None:
    """Raises for a stated type that cannot be. One that is merely wrong is a claim that is not believed."""
    held = (body.input, body.output, body.value_info) if isinstance(body, GraphProto) else (_stated(body),)
    for values in held:
        for value in values:
            kind = value.type
            if wrong := tensor_validation.type_fault(kind):
                raise InvalidModelError(f"the stated type of {value.name!r} cannot be: {wrong}", where=where)
            if tensor_validation.has_negative(kind):
                model_index.has_negative_sizes = True
            model_index.largest = max(model_index.largest, tensor_validation.stated_count(kind))


def _stated(function: FunctionProto) -> Iterable[Any]:
    return getattr(function, "value_info", ())  # functions have none in older releases of onnx


def _read(model: ModelProto, model_index: ModelIndex, where: str) -> None:
    """Raises for a name that is no text, which protobuf hands out as bytes."""
    others = [graph.name for graph in model_index.graphs]
    others += [entry.domain for holder in (model, *model.functions) for entry in holder.opset_import]
    others += [name for function in model.functions for name in (function.name, function.domain, *function.attribute)]
    others += [name for operator in model_index.operators for name in operator]
    kinds: tuple[Iterable[Any], ...] = (model_index.names, others)
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


def _body(  # noqa: PLR0915 - one walk over all nodes
    body: Body, outer: tuple[set[str], ...], imports: set[str], model_index: ModelIndex, where: str, path: str
) -> set[str]:
    """Returns the names that a body makes."""
    given = _given(body)
    seen = set(given)
    if len(seen) != len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InvalidModelError(f"{path}{twice!r} is an input or initializer twice", where=where)
    seen.add("")  # what is left out
    early: list[tuple[NodeProto, str]] = []
    holders: list[NodeProto] = []
    names = model_index.names
    holds: dict[tuple[str, str], bool] = {}
    model_index.nodes += len(body.node)
    if isinstance(body, GraphProto):
        model_index.graphs.append(body)
    is_main = isinstance(body, GraphProto) and not outer
    used: list[str] = []
    made: list[str] = []
    for index, node in enumerate(body.node, 1):
        names.add(node.name)
        operator = node.domain, node.op_type
        if operator not in holds:
            if not all(isinstance(name, str) for name in operator):
                raise InvalidModelError(f"{path}the name {operator!r} of an operator is not UTF-8", where=where)
            if not node.op_type:
                raise InvalidModelError(f"{path}node {name_of(node)!r} has no operator", where=where)
            domain = opsets.canonical_domain(node.domain)
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
            if index % CHUNK == 0:
                model_index.chunks.append(Chunk(index - CHUNK, used, made))
                used, made = [], []
    if used or made:
        model_index.chunks.append(Chunk(CHUNK * len(model_index.chunks), used, made))
    names |= seen.union(value.name for value in getattr(body, "value_info", ()))  # no new value has a type already
    model_index.operators.update(holds)
    if early:
        _explain(body, early, seen, where, path)
    for value in body.output:
        name = value if isinstance(value, str) else value.name
        if name not in seen and name and not any(name in around for around in outer):
            raise InvalidModelError(f"{path}{name!r}, an output, is not made anywhere", where=where)
    for node in holders:
        for _, _, graph in subgraphs(node):
            _body(graph, (*outer, seen), imports, model_index, where, f"{path}{node.name or node.op_type}/")
    return seen


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
