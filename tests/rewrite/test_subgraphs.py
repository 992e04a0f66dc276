# SPDX-License-Identifier: Apache-2.0
"""Subgraphs are at the target before the node that holds them."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import NodeProto
from texts import assert_same_numbers, model

import onnx_convert
import onnx_convert.adapters

UNSQUEEZE = "Unsqueeze <axes = [0]>"
BRANCHES = f"""If (c) <then_branch = t () => (a) {{ a = {UNSQUEEZE} (x) }},
                       else_branch = e () => (b) {{ n = Neg (x) b = {UNSQUEEZE} (n) }}>"""


def test_branches_of_two_nodes_may_make_values_of_the_same_names() -> None:
    function = (
        f'<domain: "f", opset_import: ["" : 12]> F (c, x) => (y) {{ u = {BRANCHES} v = {BRANCHES} y = Add (u, v) }}'
    )
    source = model("(bool c, float[2] x) => (float[1,2] y) { y = f.F (c, x) }", 12, function, ir=8, f=1)
    converted = onnx_convert.convert(source, to=13, ir_version=7).model
    assert not converted.functions
    assert_same_numbers(source, converted)


def test_graphs_keep_their_names() -> None:
    """Those that an adapter takes over from the node, too."""
    graph = """(bool c, float[2,3] x) => (float[N,M] y) {
        y = If (c) <then_branch = same () => (float[2,3] a) { a = Neg (x) },
                    else_branch = same () => (float[1,3] b) { s = Split <axis = 0> (x) b = Abs (s) }> }"""
    source = model(graph.replace("s = Split <axis = 0> (x)", "s, u = Split <axis = 0> (x)"), 12)
    converted = onnx_convert.convert(source, to=10).model
    names = {graph.name for node in converted.graph.node for graph in graphs_of(node)}
    assert names == {"same"}


def graphs_of(node: NodeProto) -> Iterator[onnx.GraphProto]:
    return (attribute.g for attribute in node.attribute if attribute.HasField("g"))
