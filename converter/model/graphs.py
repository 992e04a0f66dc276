# SPDX-License-Identifier: Apache-2.0
"""Nodes and the graphs that they hold: names, captured values, subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx import AttributeProto, GraphProto, NodeProto

from onnx_convert.model.wire import Memory, records
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import FunctionProto, ModelProto


OWN: Final = ("name", "doc_string", "metadata_props")  # the fields of a node that do not depend on its operator


_OWN_NUMBERS: Final = frozenset(NodeProto.DESCRIPTOR.fields_by_name[field].number for field in OWN)


def subgraphs(node: NodeProto) -> Iterator[tuple[int, int, GraphProto]]:
    """Yields the graphs that a node holds: the index of the attribute, the place in it, the graph."""
    for index, attribute in enumerate(node.attribute):
        if attribute.type == AttributeProto.GRAPH:
            yield index, 0, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for position, graph in enumerate(attribute.graphs):
                yield index, position, graph


def name_of(node: NodeProto) -> str:
    """Returns how people find a node: by its name, or the name of its first output."""
    return node.name or next((name for name in node.output if name), "")


def own_of(node: NodeProto) -> bytes:
    """Returns what is the node's own, whatever its operator, as fields: name, doc string and metadata, byte for
    byte."""
    data = node.SerializeToString()
    fields = records(Memory(data), 0, len(data))
    return b"".join(data[start:end] for tag, start, _, end in fields if tag >> 3 in _OWN_NUMBERS)


def copy_own(node: NodeProto, other: NodeProto) -> None:
    """Gives another node what is the node's own, whatever its operator: name, doc string and metadata."""
    other.ClearField("name")
    other.MergeFromString(own_of(node))


def used_names(node: NodeProto) -> set[str]:
    """Returns the inputs of a node, and what its subgraphs capture from outside."""
    used = set(node.input)
    used.discard("")
    if not opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
        return used
    for attribute in node.attribute:
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            for graph in (attribute.g, *attribute.graphs):
                used |= captured(graph)
    return used


def captured(graph: GraphProto) -> set[str]:
    """Returns the names that a subgraph uses from the graphs around it."""
    inside = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    inside |= {tensor.values.name for tensor in graph.sparse_initializer}
    used: set[str] = set()
    for node in graph.node:
        used |= used_names(node) - inside
        inside.update(node.output)
    return (used | {value.name for value in graph.output}) - inside


def names_in_use(model: ModelProto) -> set[str]:
    """Returns every name that a node or a graph output uses."""
    names: set[str] = set()
    bodies: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    for training in model.training_info:
        bodies += [training.initialization, training.algorithm]
    for body in bodies:
        _add_used(body, names)
    return names


def _add_used(body: GraphProto | FunctionProto, names: set[str]) -> None:
    names.update(value if isinstance(value, str) else value.name for value in body.output)
    for node in body.node:
        names.update(node.input)
        if opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
            for _, _, graph in subgraphs(node):
                _add_used(graph, names)


def every_node(body: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Yields every node of a body and of the graphs nested in it."""
    for node in body.node:
        yield node
        if opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
            for _, _, graph in subgraphs(node):
                yield from every_node(graph)


def bodies(model: ModelProto) -> Iterator[tuple[GraphProto | FunctionProto, str]]:
    """Yields the graphs and functions of a model, nested ones too, each with the way to it."""
    yield from _nested(model.graph, "")
    for training in model.training_info:
        yield from _nested(training.initialization, "training")
        yield from _nested(training.algorithm, "training")
    for function in model.functions:
        yield from _nested(function, f"function {plain(function.name)}")


def _nested(body: GraphProto | FunctionProto, path: str) -> Iterator[tuple[GraphProto | FunctionProto, str]]:
    yield body, path
    for node in body.node:
        if not opsets.may_hold_graphs(node.op_type, opsets.canonical_domain(node.domain)):
            continue
        for index, _, graph in subgraphs(node):
            step = f"{plain(node.name) or plain(node.op_type)}/{plain(node.attribute[index].name)}"
            yield from _nested(graph, f"{path}/{step}" if path else step)


def plain(name: str | bytes) -> str:
    """Returns a name as text: in a file it need not be any."""
    return name if isinstance(name, str) else bytes(name).decode("utf-8", "backslashreplace")
