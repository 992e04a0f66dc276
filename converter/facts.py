# SPDX-License-Identifier: Apache-2.0
"""The types that inference found for one graph and the graphs nested in it, computed when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import AttributeProto, GraphProto, TypeProto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onnx import NodeProto


class Facts:
    """Types by value name. `load` gives the inferred graph: a view whose nodes are those of the source graph, perhaps
    with a few more in front; `size` is the number of the source graph's nodes."""

    def __init__(self, load: Callable[[], GraphProto | None], size: int = 0) -> None:
        self._load = load
        self._size = size
        self._graph: GraphProto | None = None
        self._types: dict[str, TypeProto] | None = None

    @property
    def types(self) -> dict[str, TypeProto]:
        """Every value of the graph with a type that is known at least in part."""
        if self._types is None:
            self._graph = self._load()
            self._types = types_of(self._graph) if self._graph is not None else {}
        return self._types

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value of this graph (not of one around it)."""
        return self.types.get(name)

    def child(self, index: int, attribute: int, position: int, size: int) -> Facts:
        """The facts of a subgraph: that of the node at `index`, its attribute, and the graph's place in it."""

        def load() -> GraphProto | None:
            if not self.types and self._graph is None:
                return None
            assert self._graph is not None
            node = self._graph.node[index + len(self._graph.node) - self._size]
            held = node.attribute[attribute]
            return held.g if held.type == AttributeProto.GRAPH else held.graphs[position]

        return Facts(load, size)


def types_of(graph: GraphProto) -> dict[str, TypeProto]:
    """The type of each value that a graph states: its inputs, outputs, value_info and initializers."""
    found: dict[str, TypeProto] = {}
    for tensor in graph.initializer:
        kind = TypeProto()
        kind.tensor_type.elem_type = tensor.data_type
        for size in tensor.dims:
            kind.tensor_type.shape.dim.add(dim_value=size)
        found[tensor.name] = kind
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            if value.type.WhichOneof("value") and value.name not in found:
                found[value.name] = value.type
    return found


def subgraphs(node: NodeProto) -> Iterator[tuple[int, int, GraphProto]]:
    """The graphs that a node holds: the index of the attribute, the place in it, the graph."""
    for index, attribute in enumerate(node.attribute):
        if attribute.type == AttributeProto.GRAPH:
            yield index, 0, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for position, graph in enumerate(attribute.graphs):
                yield index, position, graph


def nothing_known() -> Facts:
    """The facts of a graph about which nobody asked inference."""
    return Facts(lambda: None)


def is_vaguer(found: TypeProto | None, known: TypeProto) -> bool:
    """Whether a type says less than what was known before: a rank or a dimension got lost."""
    if found is None or not found.WhichOneof("value"):
        return True
    if known.WhichOneof("value") != "tensor_type" or found.WhichOneof("value") != "tensor_type":
        return False
    if not known.tensor_type.HasField("shape"):
        return False
    if not found.tensor_type.HasField("shape"):
        return True
    pairs = zip(found.tensor_type.shape.dim, known.tensor_type.shape.dim, strict=False)
    return any(k.HasField("dim_value") and not f.HasField("dim_value") for f, k in pairs)


def contradicts(found: TypeProto | None, known: TypeProto) -> bool:
    """Whether two types cannot both be true of one value."""
    if found is None or not found.WhichOneof("value"):
        return False
    if found.WhichOneof("value") != known.WhichOneof("value"):
        return True
    if not found.HasField("tensor_type"):
        return False
    f, k = found.tensor_type, known.tensor_type
    if f.elem_type and k.elem_type and f.elem_type != k.elem_type:
        return True
    if not f.HasField("shape") or not k.HasField("shape"):
        return False
    if len(f.shape.dim) != len(k.shape.dim):
        return True
    pairs = zip(f.shape.dim, k.shape.dim, strict=True)
    return any(a.HasField("dim_value") and b.HasField("dim_value") and a.dim_value != b.dim_value for a, b in pairs)
