# SPDX-License-Identifier: Apache-2.0
"""Lists of nodes as a plan holds them: messages of the source, and new nodes that stay serialised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx import NodeProto

from onnx_convert.model.wire import BYTES, prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onnx import FunctionProto, GraphProto


CHUNK: Final = 4000  # nodes of the source, some 6 MB in the hands of onnx


class Chunk:
    """Nodes in a row: where they begin in their list, and the names of the values that they use and make. Names that
    only nodes of one rewrite use may lack; of nodes that were replaced or dropped, names may remain."""

    __slots__ = ("made", "start", "used")

    def __init__(self, start: int = 0, used: Iterable[str] = (), made: Iterable[str] = ()) -> None:
        self.start = start
        self.used = set(used) - {""}  # what is left out is no value
        self.made = set(made) - {""}


def messages(nodes: Iterable[NodeProto | bytes]) -> list[NodeProto]:
    """The nodes, those that are still serialised parsed."""
    return [NodeProto.FromString(node) if isinstance(node, bytes) else node for node in nodes]


def pack(
    holder: GraphProto | FunctionProto, nodes: Sequence[NodeProto | bytes], chunks: Sequence[Chunk]
) -> list[bytes]:
    """The nodes as serialised messages of the holder's kind that hold nothing else: one for each chunk, one for all
    if there are none."""
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
