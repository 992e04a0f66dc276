# SPDX-License-Identifier: Apache-2.0
"""Scopes: names of new nodes and values, and constants that are shared."""

from __future__ import annotations

from collections import Counter

from texts import assert_same_numbers, defined_names, model, node_named, with_names

import onnx_convert
import onnx_convert.adapters

# ---- where nodes stand

UNSQUEEZE = "Unsqueeze <axes = [0]>"


def test_a_helper_is_named_after_the_node_and_the_node_keeps_its_name() -> None:
    source = model("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }", 12)
    with_names(source, "attention")
    source.graph.node[0].doc_string = "normalises"
    converted = onnx_convert.convert(source, to=13).model
    names = {node.name: node.op_type for node in converted.graph.node}
    assert names["attention"] == "Softmax"
    assert node_named(converted, "attention").doc_string == "normalises"
    assert all(name.startswith("attention") for name in names)
    assert converted.graph.node[-1].output == ["y"]


def test_nodes_without_names_get_none() -> None:
    source = model("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax <axis = 1> (x) }", 12)
    converted = onnx_convert.convert(source, to=13).model
    assert {node.name for node in converted.graph.node} == {""}


def test_new_names_are_new_in_every_scope() -> None:
    """Each name that a rewrite would take is taken already, in a branch, by an input, or by a function."""
    graph = """(bool c, float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) {
        y = Softmax <axis = 1> (x)
        z = If (c) <then_branch = t () => (float[2,3,4] a) { a = Softmax <axis = 1> (x) },
                    else_branch = e () => (float[2,3,4] b) { b = Neg (x) }> }"""
    source = with_names(model(graph, 12), "n", "if", "n", "neg")
    plain = onnx_convert.convert(source, to=13).model
    fresh = sorted(set(defined_names(plain)) - set(defined_names(source)))
    assert fresh
    branch = source.graph.node[1].attribute[1].g
    for name in fresh:
        branch.node.add(op_type="Neg", input=["x"], output=[name])
    converted = onnx_convert.convert(source, to=13).model
    twice = [name for name, count in Counter(defined_names(converted)).items() if count > 1]
    assert not twice
    assert_same_numbers(source, converted)


# ---- constants


def test_equal_constants_are_one() -> None:
    source = model(f"(float[2] x) => (float[1,2] y, float[1,2] z) {{ y = {UNSQUEEZE} (x) z = {UNSQUEEZE} (x) }}", 12)
    converted = onnx_convert.convert(source, to=13).model
    assert len(converted.graph.initializer) == 1
    assert {node.input[1] for node in converted.graph.node} == {converted.graph.initializer[0].name}
