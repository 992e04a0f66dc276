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
    nodes.keep(first)
    assert not nodes.changed
    nodes.replace(NewNodes([node.SerializeToString() for node in named("b0", "b")]), [], ["b0"])
    nodes.leave_out()
    nodes.keep(fourth)
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
