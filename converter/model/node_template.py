# SPDX-License-Identifier: Apache-2.0
"""Nodes with holes in the place of names. A template is filled with serialised names and so becomes serialised nodes:
that costs a tenth of making messages."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import AttributeProto, NodeProto

from onnx_convert.model.graphs import OWN, name_of, own_of
from onnx_convert.model.node_list import NewNodes
from onnx_convert.model.wire import BYTES, text_value, varint
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Kind = tuple[int, object, bool, bytes]  # number of inputs, which names are the same, has it a name, the rest

_PLAIN: Final = frozenset(
    (
        AttributeProto.INT,
        AttributeProto.INTS,
        AttributeProto.FLOAT,
        AttributeProto.FLOATS,
        AttributeProto.STRING,
        AttributeProto.STRINGS,
    )
)
_GRAPHS: Final = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
_LARGE: Final = 1 << 16  # bytes; nodes of so many, with trees in their attributes, come one by one
_INPUT, _OUTPUT, _NAME = (
    varint(NodeProto.DESCRIPTOR.fields_by_name[field].number << 3 | BYTES) for field in ("input", "output", "name")
)


class NodeParts(NamedTuple):
    """A node taken apart. Two nodes of the same kind differ only in their names and in what is their own."""

    kind: Kind
    base: str  # how people find it
    names: list[str]  # of its inputs, then of its outputs
    values: list[bytes]  # the same as values of fields
    own: bytes  # the fields that it shares with no other node: name, doc string, metadata

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return self.kind[0]


def parts_of(node: NodeProto) -> NodeParts | None:
    """Returns a node taken apart; None for one that is one of its kind: with a subgraph, say."""
    if not opsets.is_simple(node.op_type, node.domain) and any(a.type not in _PLAIN for a in node.attribute):
        return None
    names: list[str] = node.input[:]  # an iterator costs more than a list
    inputs = len(names)
    names += node.output[:]
    values = [text_value(name) for name in names]
    parts: list[bytes] = []
    for value in values[:inputs]:
        parts += (_INPUT, value)
    for value in values[inputs:]:
        parts += (_OUTPUT, value)
    own, name = b"", node.name
    if name or node.HasField("name"):  # an empty one may be stated
        own = _NAME + text_value(name)
        parts.append(own)
    if node.HasField("doc_string") or node.metadata_props:
        own = own_of(node)
        node = _without(node, "doc_string", "metadata_props")
    data: bytes = node.SerializeToString()
    head = b"".join(parts)
    if not data.startswith(head) or len(data) > _LARGE:
        return None
    usual = len(set(names)) == len(names) and "" not in names
    pattern = len(names) if usual else tuple(names.index(name) if name else -1 for name in names)
    return NodeParts((inputs, pattern, bool(name), data[len(head) :]), name or name_of(node), names, values, own)


class NodeTemplate:
    """Nodes that stand for a node of one kind, for any node of that kind.

    Every node is a choice of pieces. These are, in this order: the literal ones, what is the subject's own, the names
    of its inputs and outputs, "", and the other names.
    """

    __slots__ = ("_choices", "_literals")

    def __init__(self, nodes: Sequence[NodeProto], bearer: NodeProto | None, names: Sequence[str]) -> None:
        """Makes holes of all names in the nodes, which are the subject's, "", and others. `bearer` is the one of the
        nodes that takes over what is the subject's own."""
        literals = [_INPUT, _OUTPUT, _NAME, *(_rest(new, bears=new is bearer) for new in nodes)]
        first = len(literals) + 1  # of the names among the pieces
        choices: list[Callable[[list[bytes]], tuple[bytes, ...]]] = []
        for index, new in enumerate(nodes):
            chosen = [piece for name in new.input for piece in (0, first + names.index(name))]
            chosen += [piece for name in new.output for piece in (1, first + names.index(name))]
            if new is bearer:
                chosen.append(len(literals))
            elif new.name:
                chosen += (2, first + names.index(new.name))
            choices.append(itemgetter(*chosen, 3 + index))
        self._literals = literals
        self._choices = choices

    def fill(self, subject: NodeParts, others: Sequence[str]) -> NewNodes:
        """Returns the nodes that stand for a subject, with these names besides the subject's own."""
        pieces = [*self._literals, subject.own, *subject.values, b"\0", *map(text_value, others)]
        return NewNodes([b"".join(choose(pieces)) for choose in self._choices])


def holds_graph(node: NodeProto) -> bool:
    """Returns whether a node holds a graph, in which no name can be a hole."""
    return any(attribute.type in _GRAPHS for attribute in node.attribute)


def _without(node: NodeProto, *fields: str) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    for field in fields:
        copy.ClearField(field)
    return copy


def _rest(node: NodeProto, *, bears: bool) -> bytes:
    """Returns what a new node is apart from its names, and, if it bears what is the subject's own, apart from that."""
    own = OWN if bears else ("name",)
    data: bytes = _without(node, "input", "output", *own).SerializeToString()
    return data
