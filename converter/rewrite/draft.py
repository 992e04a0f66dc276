# SPDX-License-Identifier: Apache-2.0
"""The nodes that adapters wrote in one graph, by the values that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onnx_convert.model.node_list import messages
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import NodeProto

    Entry = tuple[NodeProto, int]


class _Batch(NamedTuple):
    nodes: Sequence[NodeProto | bytes]
    values: Sequence[str]
    versions: Mapping[str, int]


class Written:
    """A node and the opset of its domain that it is written for, by each value that it makes.

    What replays write stays serialised until somebody asks about one of its values, and hardly anybody does.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._batches: list[_Batch] = []
        self._places: dict[str, _Batch] = {}

    def take(self, nodes: Sequence[NodeProto | bytes], values: Sequence[str], versions: Mapping[str, int]) -> None:
        """Nodes that a replay wrote, the values that they make, and the opset of each domain."""
        self._batches.append(_Batch(nodes, values, versions))

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._serialised

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            self._parse(self._serialised[name])
        return self._entries[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._entries[name] = entry

    def pop(self, name: str) -> Entry:
        """The entry of a value, which is stale_value_info."""
        entry = self[name]
        del self._entries[name]
        return entry

    @property
    def _serialised(self) -> dict[str, _Batch]:
        """Where the values are that nobody has asked about."""
        while self._batches:
            batch = self._batches.pop()
            self._places.update(dict.fromkeys(batch.values, batch))
        return self._places

    def _parse(self, batch: _Batch) -> None:
        for node in messages(batch.nodes):
            entry = node, batch.versions.get(opsets.canonical_domain(node.domain), 1)
            for name in node.output:
                if self._places.pop(name, None) is not None:
                    self._entries[name] = entry
