# SPDX-License-Identifier: Apache-2.0
"""A node list hides which nodes are serialised, and where its chunks begin."""

from __future__ import annotations

import onnx
import pytest
from onnx import NodeProto

from onnx_convert.model.node_list import Chunk, NewNodes, NodeList


def named(*names: str) -> list[NodeProto]:
    return [NodeProto(op_type="Relu", name=name, input=["x"], output=[name]) for name in names]


@pytest.mark.parametrize("compact", [True, False])
def test_a_node_list(compact: bool) -> None:
    source = onnx.GraphProto(node=named("a", "b", "c", "d"))
    nodes = NodeList(source, [Chunk(0, [], ["a", "b"]), Chunk(2, [], ["c", "d"])], compact=compact)
    first, _, _, fourth = source.node
    nodes.keep([first])
    assert not nodes.changed
    nodes.replace(NewNodes([node.SerializeToString() for node in named("b0", "b")]), [], ["b0"])
    nodes.leave_out()
    nodes.keep([fourth])
    assert nodes.changed
    nodes.put_first(named("zero"))
    assert len(nodes) == 5
    assert [node.name for node in nodes] == ["zero", "a", "b0", "b", "d"]
    nodes.discard({id(node) for node in nodes if node.name in ("a", "b0")})
    parts = [onnx.GraphProto.FromString(part) for part in nodes.packed()]
    assert [[node.name for node in part.node] for part in parts] == [["zero", "b"], ["d"]]
    assert [chunk.made for chunk in nodes.chunks] == [{"a", "b", "b0"}, {"c", "d"}]
    nodes.write(simple=compact)
    assert [node.name for node in source.node] == ["zero", "b", "d"]


@pytest.mark.parametrize("runs", [(6,), (0, 6), (2, 4), (3, 0, 3), (1, 2, 3), (1,) * 6])
def test_runs_of_kept_nodes_are_divided_at_the_borders_of_chunks(runs: tuple[int, ...]) -> None:
    source = onnx.GraphProto(node=named(*"abcdef"))
    nodes = NodeList(source, [Chunk(0, [], ["a", "b"]), Chunk(2, [], ["c", "d", "e"]), Chunk(5, [], ["f"])])
    rest = list(source.node)
    for length in runs:
        nodes.keep(rest[:length])
        del rest[:length]
    assert [node.name for node in nodes] == [*"abcdef"]
    assert [(chunk.start, chunk.exact) for chunk in nodes.chunks] == [(0, True), (2, True), (5, True)]
    assert not nodes.changed


def test_a_chunk_is_exact_until_it_changes() -> None:
    source = onnx.GraphProto(node=named(*"abcd"))
    nodes = NodeList(source, [Chunk(0, [], ["a", "b"]), Chunk(2, [], ["c"]), Chunk(3, [], ["d"])])
    nodes.keep(source.node[:2])
    nodes.leave_out()
    nodes.keep(source.node[3:])
    assert [chunk.exact for chunk in nodes.chunks] == [True, False, True]
    nodes.put_first(named("zero"))
    assert [(chunk.start, chunk.exact) for chunk in nodes.chunks] == [(0, False), (3, False), (3, True)]
    nodes.discard({id(node) for node in nodes if node.name == "d"})
    assert [(chunk.start, chunk.exact) for chunk in nodes.chunks] == [(0, False), (3, False), (3, False)]
