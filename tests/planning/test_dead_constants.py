# SPDX-License-Identifier: Apache-2.0
"""Constants that lose their last use go; which initializers are constants."""

from __future__ import annotations

import numpy as np
import pytest
from texts import assert_same_numbers, model, operators

import onnx_convert
import onnx_convert.adapters
from oracle import run


@pytest.mark.parametrize(
    ("graph", "left"),
    [
        ("(float[2] x) => (float[1,2] y) <int64[1] a = {0}> { y = Unsqueeze (x, a) }", set()),
        ("(float[2] x) => (float[1,2] y) <int64[1] a = {0}, int64[1] b = {0}> { y = Unsqueeze (x, a) }", {"b"}),
        ("(float[2] x) => (float[1,2] y, int64[1] z) <int64[1] a = {0}> { y = Unsqueeze (x, a) z = Neg (a) }", {"a"}),
        ("(float[2] x) => (float[1,2] y, int64[1] a) <int64[1] a = {0}> { y = Unsqueeze (x, a) }", {"a"}),
        ("(float[2] x) => (float[1,2] y) { a = Constant <value_ints = [0]> () y = Unsqueeze (x, a) }", set()),
        (
            """(float[2] x) => (float[1,2] y) <int64[1] one = {1}, int64[1] two = {1}>
               { a = Sub (one, two) y = Unsqueeze (x, a) }""",
            set(),
        ),
        (
            """(float[2] x) => (float[2,1] y) <int64[1] a = {0}> {
                y = Scan <num_scan_inputs = 1, body = b (float r) => (float[1] q) { q = Unsqueeze (r, a) }> (x) }""",
            set(),
        ),
        (
            """(int64[2] x) => (int64[1,2] y, int64[2,1] z) <int64[1] a = {0}> {
                y = Unsqueeze (x, a)
                z = Scan <num_scan_inputs = 1, body = b (int64 r) => (int64[1] q) { q = Add (r, a) }> (x) }""",
            {"a"},
        ),
    ],
    ids=["initializer", "unused of its own", "used elsewhere", "an output", "Constant", "computed", "captured",
         "captured elsewhere"],
)  # fmt: skip
def test_a_constant_goes_with_its_last_use(graph: str, left: set[str]) -> None:
    source = model(graph, 13)
    converted = onnx_convert.convert(source, to=12).model
    assert {tensor.name for tensor in converted.graph.initializer} == left
    assert not [node for node in converted.graph.node if node.op_type in ("Constant", "Sub")]
    assert_same_numbers(source, converted)


def test_an_initializer_that_is_an_input_is_no_constant_from_ir_version_4_on() -> None:
    """Whoever runs the model may give another value for it."""
    graph = "(float[2] x, int64[1] a) => (float[N,M] y) <int64[1] a = {0}> { y = Unsqueeze (x, a) }"
    source = model(graph, 13)
    converted = onnx_convert.convert(source, to=12).model
    for axis, shape in ((0, (1, 2)), (1, (2, 1))):
        feeds = {"x": np.zeros(2, np.float32), "a": np.array([axis])}
        assert [value.shape for value in run(converted, feeds)] == [shape]


def test_an_initializer_that_is_an_input_is_a_constant_at_ir_version_3() -> None:
    graph = "(float[2] x, int64[1] a) => (float[1,2] y) <int64[1] a = {0}> { y = Unsqueeze (x, a) }"
    converted = onnx_convert.convert(model(graph, 13, ir=3), to=12)
    assert operators(converted.model) == ["Unsqueeze"]
    assert any("IR version 3" in note for note in converted.report.notes)
