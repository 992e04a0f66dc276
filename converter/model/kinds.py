# SPDX-License-Identifier: Apache-2.0
"""Divides the nodes of a model into kinds: an operator with these attributes, so many outputs, and what is certain of
its inputs without inference. A model has few kinds of nodes and many of each, so whoever judges nodes judges one of
each kind."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx import AttributeProto, GraphProto, TensorProto

from onnx_convert.model import tensors
from onnx_convert.spec import opsets
from onnx_convert.spec.types import size, tensor_type, type_str

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from onnx import NodeProto, TypeProto

Dims = tuple[int | None, ...]
Operator = tuple[str, str]
"""A domain, as it is spelled, and a name."""

Kind = tuple[int, Operator, tuple[Any, ...], int, tuple[int | None, ...]]
"""The number of the body, the operator, its attributes, how many outputs (below 0 if the last one is left out), and the
places in `Kinds.known` of what is certain of the inputs, of a Constant also of its output."""

_SHORT: Final = 64  # elements
_SMALL: Final = 1024  # bytes
_INTEGERS: Final = (TensorProto.INT64, TensorProto.INT32)
PLAIN: Final = frozenset(
    (
        AttributeProto.FLOAT,
        AttributeProto.INT,
        AttributeProto.STRING,
        AttributeProto.FLOATS,
        AttributeProto.INTS,
        AttributeProto.STRINGS,
        AttributeProto.UNDEFINED,
    )
)
"""The types of attributes that hold neither tensors nor graphs."""


class Known(NamedTuple):
    """The certain facts of a value: its type as schemas spell it, its dimensions, the elements of a short integer
    tensor."""

    type_str: str = ""
    dims: Dims | None = None
    elements: tuple[int, ...] | None = None


OMITTED: Final = Known("left out")
"""Stands for an input that is left out, of which an empty name tells: it is not one of which nothing is known."""


class Kinds:
    """The kinds of nodes of a model, found by one who walks over it and tells which body and graph comes next.

    `first` holds the first node of each kind; `constants` all Constant nodes, whose large tensors tell them apart, not
    their kinds.
    """

    def __init__(self) -> None:
        self.first: dict[Kind, NodeProto] = {}
        self.constants: list[NodeProto] = []
        self.known: list[Known] = []
        self._places: dict[Known, int] = {}
        self._bodies = 0
        self._values: dict[str, int] = {}  # by name: the place of what is certain
        self._hidden: list[dict[str, int | None]] = []  # by graph, the innermost last: what its own names hide

    # ---- where the walk is

    def begin_body(self) -> None:
        """Says that the nodes that come are of the next body, of whose values nothing is certain yet."""
        self._bodies += 1
        self._values.clear()
        self._state("", OMITTED)

    @contextmanager
    def inside(self, graph: GraphProto) -> Iterator[None]:
        """Says that the nodes that come are of a subgraph, whose inputs may be anything."""
        self._hidden.append({})
        for value in graph.input:
            self._state(value.name, Known())
        self.begin_graph(graph)
        yield
        for name, place in self._hidden.pop().items():
            if place is None:
                self._values.pop(name, None)
            else:
                self._values[name] = place

    def begin_main(self, graph: GraphProto, *, overridable: bool) -> None:
        """Says that the nodes that come are of the main graph, whose initializers may be `overridable` by callers."""
        self.begin_body()
        for value in graph.input:
            self._state(value.name, of_type(value.type))
        self.begin_graph(graph, given=self._values.copy() if overridable else ())

    def begin_graph(self, graph: GraphProto, given: Collection[str] = ()) -> None:
        """Takes down what is certain of initializers; of those `given` from outside the elements are not."""
        for tensor in graph.initializer:
            self._state(tensor.name, _of_tensor(tensor, is_read=tensor.name not in given))

    def _state(self, name: str, known: Known) -> int:
        """Takes down what is certain of a value; returns the place where that is told."""
        if known not in self._places:
            self._places[known] = len(self.known)
            self.known.append(known)
        if self._hidden:
            self._hidden[-1].setdefault(name, self._values.get(name))
        place = self._values[name] = self._places[known]
        return place

    # ---- one node after the other

    def take(self, node: NodeProto, operator: Operator, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Takes down the kind of the next node, whose parts these are."""
        kind = self._of(node, operator, inputs, outputs)
        if kind not in self.first:
            self.first[kind] = node

    def trailing(self) -> set[Operator]:
        """Returns the operators of which some node ends with a part that is left out."""
        return {
            kind[1]
            for kind in self.first
            if kind[3] < 0 or (kind[4] and kind[4][-1] is not None and self.known[kind[4][-1]] is OMITTED)
        }

    def _of(self, node: NodeProto, operator: Operator, inputs: Sequence[str], outputs: Sequence[str]) -> Kind:
        places = tuple(map(self._values.get, inputs))
        if operator[1] == "Constant":
            places += self._constant(node)
        held = node.attribute
        attributes = tuple([key_of(attribute) for attribute in held]) if held else ()
        count = len(outputs)
        if count and not outputs[-1]:
            count = -count  # some at the end are left out
        return (self._bodies, operator, attributes, count, places)

    def _constant(self, node: NodeProto) -> tuple[int, ...]:
        if opsets.canonical_domain(node.domain) != opsets.AI_ONNX:
            return ()
        self.constants.append(node)
        known = _of_constant(node)
        return (self._state(node.output[0], known),) if known is not None and node.output else ()


class Members(Kinds):
    """The nodes of some kinds, all of them, in the order of the walk."""

    def __init__(self, kinds: Collection[Kind]) -> None:
        super().__init__()
        self.nodes: list[tuple[Kind, NodeProto]] = []
        self._kinds = kinds

    def take(self, node: NodeProto, operator: Operator, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Takes down the next node if it is of one of the kinds."""
        kind = self._of(node, operator, inputs, outputs)
        if kind in self._kinds:
            self.nodes.append((kind, node))


def key_of(attribute: AttributeProto) -> Any:
    """Returns what tells an attribute from others; of large tensors and of graphs only what they are."""
    kind = attribute.type
    if kind in PLAIN or (kind == AttributeProto.TENSOR and attribute.ByteSize() < _SMALL):
        return attribute.SerializeToString()
    return attribute.name, kind, *attribute.t.dims


def of_type(kind: TypeProto) -> Known:
    """Returns what a stated type makes certain."""
    dims = None
    if kind.tensor_type.HasField("shape"):
        sizes = [size(dim) for dim in kind.tensor_type.shape.dim]
        dims = tuple([number if isinstance(number, int) else None for number in sizes])
    return Known(type_str(kind), dims)


def _of_tensor(tensor: TensorProto, *, is_read: bool) -> Known:
    dims = tuple(tensor.dims)
    elements = None
    if is_read and tensor.data_type in _INTEGERS and len(dims) < 2 and (not dims or 0 <= dims[0] <= _SHORT):
        elements = _elements(tensor)
    return Known(type_str(tensor_type(tensor.data_type)), dims, elements)


def _elements(tensor: TensorProto) -> tuple[int, ...] | None:
    if tensor.data_location == TensorProto.EXTERNAL:
        return None
    return tuple(int(one) for one in tensors.elements_of(tensor).ravel())


def _of_constant(node: NodeProto) -> Known | None:
    """Returns what is certain of the value of a Constant node, None if that is nothing."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            return _of_tensor(attribute.t, is_read=True) if attribute.t.dims or attribute.t.ByteSize() < 1024 else None
        if attribute.name == "value_ints":
            return Known("tensor(int64)", (len(attribute.ints),), tuple(attribute.ints[:]))
        if attribute.name == "value_int":
            return Known("tensor(int64)", (), (attribute.i,))
    return None
