# SPDX-License-Identifier: Apache-2.0
"""The types that inference found for one graph and the graphs nested in it, computed when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import AttributeProto, GraphProto, ValueInfoProto

from onnx_convert import opsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from onnx import NodeProto, TensorProto, TypeProto


class Facts:
    """Types by value name. `load` gives the inferred graph: a view whose nodes are those of the source graph, perhaps
    with a few more in front; `size` is the number of the source graph's nodes."""

    def __init__(self, load: Callable[[], GraphProto | None], size: int = 0) -> None:
        self._load: Callable[[], GraphProto | None] | None = load
        self._size = size
        self._graph: GraphProto | None = None
        self._values: dict[str, ValueInfoProto] | None = None

    @property
    def values(self) -> dict[str, ValueInfoProto]:
        """Every value of the graph of which something is stated."""
        if self._values is None:
            load, self._load = self._load, None  # which mostly leads back here
            self._graph = load() if load is not None else None
            self._values = values_of(self._graph) if self._graph is not None else {}
        return self._values

    @property
    def asked(self) -> bool:
        """Whether anybody had to know."""
        return self._values is not None

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value of this graph (not of one around it), as far as it is known."""
        value = self.values.get(name)
        return value.type if value is not None and value.type.WhichOneof("value") else None

    def child(self, index: int, attribute: int, position: int, size: int) -> Facts:
        """The facts of a subgraph: that of the node at `index`, its attribute, and the graph's place in it."""

        def load() -> GraphProto | None:
            if not self.values and self._graph is None:
                return None
            assert self._graph is not None
            node = self._graph.node[index + len(self._graph.node) - self._size]
            held = node.attribute[attribute]
            graph: GraphProto = held.g if held.type == AttributeProto.GRAPH else held.graphs[position]
            return graph

        return Facts(load, size)


def values_of(graph: GraphProto, wanted: AbstractSet[str] | None = None) -> dict[str, ValueInfoProto]:
    """What a graph states of each value, by name: its inputs, outputs, value_info and initializers; of all values, or
    of those that are wanted."""
    found = {tensor.name: _stated(tensor) for tensor in graph.initializer if wanted is None or tensor.name in wanted}
    for values in (graph.value_info, graph.output, graph.input):
        if wanted is None:
            found.update({value.name: value for value in values})
        else:
            found.update({name: value for value in values if (name := value.name) in wanted})
    return found


def _stated(tensor: TensorProto) -> ValueInfoProto:
    value = ValueInfoProto(name=tensor.name)
    value.type.tensor_type.elem_type = tensor.data_type
    value.type.tensor_type.shape.SetInParent()
    for size in tensor.dims:
        value.type.tensor_type.shape.dim.add(dim_value=size)
    return value


def subgraphs(node: NodeProto) -> Iterator[tuple[int, int, GraphProto]]:
    """The graphs that a node holds: the index of the attribute, the place in it, the graph."""
    for index, attribute in enumerate(node.attribute):
        if attribute.type == AttributeProto.GRAPH:
            yield index, 0, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for position, graph in enumerate(attribute.graphs):
                yield index, position, graph


def name_of(node: NodeProto) -> str:
    """How people find a node: by its name, or the name of its first output."""
    return node.name or next((name for name in node.output if name), "")


def nothing_known() -> Facts:
    """The facts of a graph about which nobody asked inference."""
    return Facts(lambda: None)


def used_names(node: NodeProto) -> set[str]:
    """The inputs of a node, and what its subgraphs capture from outside."""
    used = set(node.input)
    used.discard("")
    if not opsets.may_hold_graphs(node.op_type, opsets.normalise(node.domain)):
        return used
    for attribute in node.attribute:
        if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            for graph in (attribute.g, *attribute.graphs):
                used |= captured(graph)
    return used


def captured(graph: GraphProto) -> set[str]:
    """The names that a subgraph uses from the graphs around it."""
    inside = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    inside |= {tensor.values.name for tensor in graph.sparse_initializer}
    used: set[str] = set()
    for node in graph.node:
        used |= used_names(node) - inside
        inside.update(node.output)
    return (used | {value.name for value in graph.output}) - inside
