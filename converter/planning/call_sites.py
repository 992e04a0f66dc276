# SPDX-License-Identifier: Apache-2.0
"""The calls of each model-local function, and what all calls of one have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onnx import GraphProto, NodeProto, TypeProto

from onnx_convert.analysis.facts import Facts
from onnx_convert.model.functions import key_of
from onnx_convert.model.graphs import subgraphs
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from onnx import FunctionProto, ModelProto

    from onnx_convert.model.functions import FunctionKey


class Call(NamedTuple):
    """A node that calls a function, and the facts of the graphs that it stands in, innermost first."""

    node: NodeProto
    facts: tuple[Facts, ...]

    def type_of(self, name: str) -> TypeProto | None:
        """Returns what is known of a value that the call can see."""
        return next((known for facts in self.facts if (known := facts.type_of(name)) is not None), None)


def walk(body: GraphProto | FunctionProto, facts: tuple[Facts, ...] = ()) -> Iterator[Call]:
    """Yields every node of a body and of the graphs nested in it."""
    for index, node in enumerate(body.node):
        yield Call(node, facts)
        if opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
            for attribute, position, graph in subgraphs(node):
                inner = facts[0].child(index, attribute, position, len(graph.node)) if facts else None
                yield from walk(graph, (inner, *facts) if inner else ())


def find(
    model: ModelProto,
    functions: Mapping[FunctionKey, FunctionProto],
    main: Facts,
    facts_of: Callable[[FunctionKey], Facts],
) -> dict[FunctionKey, list[Call]]:
    """Returns every call of each function, in the main graph and in other functions."""
    sites: dict[FunctionKey, list[Call]] = {}
    bodies: list[tuple[GraphProto | FunctionProto, Facts]] = [(model.graph, main)]
    bodies += [(function, facts_of(key)) for key, function in functions.items()]
    for training in model.training_info:
        bodies += [(graph, Facts(lambda: None)) for graph in (training.initialization, training.algorithm)]
    for body, facts in bodies:
        for call in walk(body, (facts,)):
            key = key_of(call.node)
            if key in functions:
                sites.setdefault(key, []).append(call)
    return sites


def common_inputs(function: FunctionProto, sites: list[Call]) -> dict[str, TypeProto]:
    """Returns the type of each formal input, as far as all calls agree on it."""
    found: dict[str, TypeProto] = {}
    for index, name in enumerate(function.input):
        actual = [call.type_of(call.node.input[index]) if index < len(call.node.input) else None for call in sites]
        agreed = _common(actual)
        if agreed is not None:
            found[name] = agreed
    return found


def _common(types: list[TypeProto | None]) -> TypeProto | None:
    """Returns what several types agree on: None if nothing, a tensor type without the dimensions that differ
    otherwise."""
    if not types or any(kind is None for kind in types):
        return None
    first = types[0]
    assert first is not None
    agreed = TypeProto()
    agreed.CopyFrom(first)
    for kind in types[1:]:
        assert kind is not None
        if kind == agreed:
            continue
        if kind.WhichOneof("value") != "tensor_type" or not agreed.HasField("tensor_type"):
            return None
        if kind.tensor_type.elem_type != agreed.tensor_type.elem_type:
            return None
        if not kind.tensor_type.HasField("shape") or len(kind.tensor_type.shape.dim) != len(
            agreed.tensor_type.shape.dim
        ):
            agreed.tensor_type.ClearField("shape")
        elif agreed.tensor_type.HasField("shape"):
            for mine, other in zip(agreed.tensor_type.shape.dim, kind.tensor_type.shape.dim, strict=True):
                if mine != other:
                    mine.Clear()
    return agreed
