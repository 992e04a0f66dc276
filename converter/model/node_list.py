# SPDX-License-Identifier: Apache-2.0
"""The new node list of a graph. Of the new nodes many stay serialised, because hardly anybody looks into them and a
message in hand costs several times as much; and a long list is divided into chunks. Nobody outside sees either: nodes
are handed in and come out as messages, and whoever wants a graph to serialise gets its nodes packed, chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Final, overload

from onnx import NodeProto

from onnx_convert.model.wire import BYTES, prefix
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from onnx import FunctionProto, GraphProto

    Held = NodeProto | bytes

CHUNK: Final = 4000  # nodes of the source, some 6 MB in the hands of onnx


class Chunk:
    """Nodes in a row: where they begin in their list, and the names of the values that they use and make.

    These are `exact` as long as the nodes are those of the source. Then names that only nodes of one rewrite use may
    lack; of nodes that were replaced or dropped, names may remain.
    """

    __slots__ = ("exact", "made", "start", "used")

    def __init__(self, start: int = 0, used: Iterable[str] = (), made: Iterable[str] = ()) -> None:
        self.start = start
        self.used = set(used)
        self.made = set(made)
        for names in (self.used, self.made):
            names.discard("")  # what is left out is no value
        self.exact = True


class NewNodes(Sequence[NodeProto]):
    """The nodes that stand for one node of the source. They never change."""

    __slots__ = ("_held",)

    def __init__(self, nodes: Sequence[Held]) -> None:
        self._held = nodes

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[NodeProto]:
        return iter(self._messages())

    @overload
    def __getitem__(self, index: int) -> NodeProto: ...
    @overload
    def __getitem__(self, index: slice) -> list[NodeProto]: ...
    def __getitem__(self, index: int | slice) -> NodeProto | list[NodeProto]:
        return self._messages()[index]

    def _messages(self) -> list[NodeProto]:
        return [_parsed(node) for node in self._held]

    def parsed(self) -> NewNodes:
        """Returns the same nodes as messages, for one who goes through them more than once."""
        return NewNodes(self._messages())


class NodeList:
    """The nodes of a graph as they will be, in order. It is filled in the order of the source: each node there is
    handed to one call of `keep`, `replace` or `leave_out`.

    `chunks` are those of the source. `compact` says that nodes may be held serialised although they stay, because no
    message of the source holds much.
    """

    def __init__(
        self, graph: GraphProto | FunctionProto, chunks: Sequence[Chunk] = (), *, compact: bool = False
    ) -> None:
        self.changed = False  # whether the list is another one than the source's
        self.chunks: list[Chunk] = []
        self._graph = graph
        self._compact = compact
        self._held: list[Held] = []
        self._ahead = list(reversed(chunks))
        self._chunk = Chunk()
        self._done = 0  # nodes of the source
        self._border = chunks[0].start if chunks else -1
        self._packed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[NodeProto]:
        """Yields messages, which stay the same from the first time on."""
        found = [_parsed(node) for node in self._held]
        self._held = [*found]
        return iter(found)

    def passing(self) -> Iterator[NodeProto]:
        """Yields messages for one look each: those of serialised nodes are not kept."""
        yield from map(_parsed, self._held)

    # ---- one node of the source after the other

    def keep(self, nodes: Sequence[NodeProto]) -> None:
        """Takes over nodes of the source, in a row, as they are."""
        while self._done <= self._border < self._done + len(nodes):
            ahead = self._border - self._done
            self._take(nodes[:ahead])
            self._begin_chunk()
            nodes = nodes[ahead:]
        self._take(nodes)

    def _take(self, nodes: Sequence[NodeProto]) -> None:
        self._done += len(nodes)
        # Once the list has changed, every node has to be serialised, and a message in hand costs more.
        self._held += [node.SerializeToString() for node in nodes] if self._compact and self.changed else nodes

    def replace(self, nodes: NewNodes, used: Collection[str], made: Iterable[str] = ()) -> None:
        """Puts new nodes in place of a node of the source, which use and make these values."""
        if self._done == self._border:
            self._begin_chunk()
        self._done += 1
        self._held += nodes._held  # noqa: SLF001  (how they are held is the matter of this module)
        self._chunk.used.update(used)
        self._chunk.made.update(made)
        self._chunk.exact = False
        self.changed = True

    def leave_out(self) -> None:
        """Passes over a node of the source."""
        self.replace(NewNodes(()), ())

    def _begin_chunk(self) -> None:
        chunk = self._ahead.pop()
        self._chunk = Chunk(len(self._held), chunk.used, chunk.made)
        self.chunks.append(self._chunk)
        self._border = self._ahead[-1].start if self._ahead else -1

    # ---- the list as a whole

    def put_first(self, nodes: Sequence[NodeProto]) -> None:
        """Puts new nodes in front of all others."""
        self._held[:0] = nodes
        for chunk in self.chunks[:1]:
            chunk.exact = False
        for chunk in self.chunks[1:]:
            chunk.start += len(nodes)
        self.changed = True

    def discard(self, gone: Container[int]) -> None:
        """Takes nodes off the list, by their identities."""
        stays = [id(node) not in gone for node in self]
        if all(stays):
            return
        before = [0, *accumulate(stays)]
        self._held = [*compress(self._held, stays)]
        for chunk in self.chunks:
            chunk.start = before[chunk.start]
            chunk.exact = False
        self.changed = True

    def exchanged(self, new: Mapping[int, NodeProto]) -> NodeList:
        """Returns a list with others in place of some nodes, by their identities."""
        made = copy(self)
        made._held = [new.get(id(node), node) for node in self._held]  # noqa: SLF001  (of its own class)
        made._packed = []  # noqa: SLF001
        made.changed = True
        return made

    def holders(self) -> list[NodeProto]:
        """Returns the nodes that may hold graphs. None of them is serialised: new ones have been looked into."""
        messages = (node for node in self._held if not isinstance(node, bytes))
        return [n for n in messages if opsets.may_hold_graphs(n.op_type, opsets.canonical_domain(n.domain))]

    def packed(self) -> list[bytes]:
        """Returns the nodes as serialised graphs that hold nothing else: one for each chunk, one if there are none.

        To put serialised nodes into a message together costs a fraction of copying them one by one. The list must be
        complete.
        """
        if not self._packed:
            self._packed = _pack(self._graph, self._held, self.chunks)
        return self._packed

    def write(self, *, simple: bool) -> None:
        """Makes this the graph's own node list, if it is another one. `simple` says that all nodes are (see
        `opsets.is_simple`), and may be copied."""
        if not self.changed:
            return
        if simple:
            del self._graph.node[:]
            for nodes in self.packed():
                self._graph.MergeFromString(nodes)
        else:
            _replace_nodes(self._graph, list(self))


def pack(graph: GraphProto, chunks: Sequence[Chunk]) -> list[bytes]:
    """Returns the nodes of a graph as serialised graphs, one for each chunk, one for all if there are none."""
    return _pack(graph, graph.node, chunks)


def _pack(holder: GraphProto | FunctionProto, nodes: Sequence[Held], chunks: Sequence[Chunk]) -> list[bytes]:
    tag = holder.DESCRIPTOR.fields_by_name["node"].number << 3 | BYTES
    packed = []
    starts = [chunk.start for chunk in chunks] or [0]
    for start, stop in zip(starts, [*starts[1:], len(nodes)], strict=True):
        parts: list[bytes] = []
        for node in nodes[start:stop]:
            data = node if isinstance(node, bytes) else node.SerializeToString()
            parts += (prefix(tag, len(data)), data)
        packed.append(b"".join(parts))
    return packed


def _parsed(node: Held) -> NodeProto:
    return NodeProto.FromString(node) if isinstance(node, bytes) else node


def _replace_nodes(graph: GraphProto | FunctionProto, nodes: list[NodeProto]) -> None:
    """Makes `nodes` the node list. Those that are in it already may be large and are not copied."""
    held = graph.node
    present = list(held)  # the wrappers stay alive, hence their identities hold
    staying = {id(node) for node in present}
    position: dict[int, int] = {}
    added = []
    for place, node in enumerate(nodes):
        if id(node) in staying:
            position[id(node)] = place
        else:
            held.append(node)
            added.append(held[-1])
            position[id(added[-1])] = place
    held.sort(key=lambda node: position.get(id(node), len(nodes)))
    del held[len(nodes) :]
