# SPDX-License-Identifier: Apache-2.0
"""The types that inference found for one graph and the graphs nested in it, computed when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import AttributeProto, GraphProto, ValueInfoProto

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx import TensorProto, TypeProto


class Facts:
    """Types by value name. `load` gives the inferred graph: a view whose nodes are those of the source graph, perhaps
    with a few more in front, or none if none has a subgraph. `size` is the number of the source graph's nodes."""

    def __init__(self, load: Callable[[], GraphProto | None], size: int = 0) -> None:
        self._load: Callable[[], GraphProto | None] | None = load
        self._size = size
        self._graph: GraphProto | None = None
        self._last: tuple[str | None, TypeProto | None] = None, None  # what was asked for last, and the answer
        self._stated: list[tuple[Sequence[ValueInfoProto], dict[str, int]]] | None = None

    @property
    def stated(self) -> list[tuple[Sequence[ValueInfoProto], dict[str, int]]]:
        """The statements of the graph about its values, and their places by name; what comes first counts.

        Places are kept instead of messages: few are ever asked for, and each one in hand costs as much as it holds.
        """
        if self._stated is None:
            load, self._load = self._load, None  # which mostly leads back here
            self._graph = graph = load() if load is not None else None
            self._stated = []
            if graph is not None:
                constants = [_stated(tensor) for tensor in graph.initializer]
                for values in (graph.input, graph.output, graph.value_info, constants):
                    self._stated.append((values, {value.name: place for place, value in enumerate(values)}))
        return self._stated

    @property
    def asked(self) -> bool:
        """Whether the statements had to be known."""
        return self._stated is not None

    def type_of(self, name: str) -> TypeProto | None:
        """Returns the type of a value of this graph (not of one around it), as far as it is known."""
        # The same is mostly asked twice in a row: by who judges a node, and by who rewrites it.
        if self._last[0] != name or self._last[1] is None:
            self._last = name, self._look_up(name)
        return self._last[1]

    def _look_up(self, name: str) -> TypeProto | None:
        for values, places in self.stated:
            if name in places:
                kind = values[places[name]].type
                return kind if kind.WhichOneof("value") else None
        return None

    def child(self, index: int, attribute: int, position: int, size: int) -> Facts:
        """Returns the facts of a subgraph: that of the node at `index`, its attribute, and the graph's place in it."""

        def load() -> GraphProto | None:
            if not self.stated or self._graph is None:
                return None
            node = self._graph.node[index + len(self._graph.node) - self._size]
            held = node.attribute[attribute]
            graph: GraphProto = held.g if held.type == AttributeProto.GRAPH else held.graphs[position]
            return graph

        return Facts(load, size)


def _stated(tensor: TensorProto) -> ValueInfoProto:
    value = ValueInfoProto(name=tensor.name)
    value.type.tensor_type.elem_type = tensor.data_type
    value.type.tensor_type.shape.SetInParent()
    for size in tensor.dims:
        value.type.tensor_type.shape.dim.add(dim_value=size)
    return value


def nothing_known() -> Facts:
    """Returns the facts of a graph about which nobody asked inference."""
    return Facts(lambda: None)
