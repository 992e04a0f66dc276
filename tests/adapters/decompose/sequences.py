# SPDX-License-Identifier: Apache-2.0
"""Sequences (11), optionals (15) and SequenceMap (17) where they do not exist."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import all_nodes, run, validate

EXACT = {"exact": True}
FUNCTION = {"function": "there are no"}
SIZES = {"dims": "fixed", "ranks": "fixed", **FUNCTION}
SPLIT = "s = SplitToSequence<axis=1>(x, n)"

ROWS: list[Row] = [
    rewrites(
        "SequenceAt",
        11,
        10,
        "(float[2] a, float[3] b) => (float[3] y) <int64 p = {-1}>"
        " { s = SequenceConstruct(a, b) y = SequenceAt(s, p) }",
        into=["Identity"],
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "SequenceInsert and SequenceErase",
        13,
        7,
        "(double[2] a, double[2] b) => (double[2] y, int64 n) <int64 p = {0}>"
        " { s = SequenceEmpty<dtype=11>() t = SequenceInsert(s, a)"
        " u = SequenceInsert(t, b, p) v = SequenceErase(u) y = SequenceAt(v, p) n = SequenceLength(u) }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "SplitToSequence in parts",
        11,
        8,
        f"(float[2,5] x) => (float[2,3] y) <int64[2] n = {{2, 3}}, int64 p = {{1}}> {{ {SPLIT} y = SequenceAt(s, p) }}",
        may_refuse=SIZES,
        into=["Slice"],
    ),
    rewrites(
        "SplitToSequence evenly",
        13,
        9,
        f"(float[2,5] x) => (float[2,5] y) <int64 n = {{2}}> {{ {SPLIT} y = ConcatFromSequence<axis=-1>(s) }}",
        may_refuse=SIZES,
        options=EXACT,
    ),
    rewrites(
        "SplitToSequence into rows",
        11,
        10,
        "(float[3,2] x) => (float[2,3] y)"
        " { s = SplitToSequence<keepdims=0>(x) y = ConcatFromSequence<axis=-1, new_axis=1>(s) }",
        may_refuse=SIZES,
        options=EXACT,
    ),
    rewrites(
        "a sequence read in a branch",
        13,
        9,
        "(float[2] a, float[2] b, bool c) => (float[2] y) <int64 p = {1}> { s = SequenceConstruct(a, b) y = If(c)"
        " <then_branch = g () => (float[2] t) { t = SequenceAt(s, p) },"
        " else_branch = h () => (float[2] e) { e = Neg(a) }> }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "Optional that is read by the newest OptionalGetElement",
        18,
        14,
        "(float[2,2] x) => (float[2,2] y) { o = Optional(x) y = OptionalGetElement(o) }",
        into=["Identity"],
        may_refuse={"function": "made in a function"},
    ),
    rewrites(
        "Optional",
        15,
        9,
        "(float[2] x) => (float[2] y, bool b) { o = Optional(x) y = OptionalGetElement(o) b = OptionalHasElement(o) }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    rewrites(
        "an optional sequence",
        18,
        10,
        "(float[2] a, float[3] b) => (float[3] y) <int64 p = {1}>"
        " { s = SequenceConstruct(a, b) o = Optional(s) t = OptionalGetElement(o) y = SequenceAt(t, p) }",
        options=EXACT,
        may_refuse=FUNCTION,
    ),
    refuses(
        "a computed place",
        11,
        10,
        "(float[2] a, int64 p) => (float[2] y) { s = SequenceConstruct(a, a) y = SequenceAt(s, p) }",
        because=", and the",
    ),
    rewrites(
        "a sequence that nobody reads",
        11,
        10,
        "(float[2] x) => (float[2] y) { s = SequenceConstruct(x) y = Neg(x) }",
        into=["Neg"],
    ),
]


test_rows = each_of(ROWS)


def converted(graph: str, source: int, target: int) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target).model
    validate(result)
    return result


# ---- sequences


def test_sequences_leave_nothing_behind() -> None:
    graph = (
        "(float[2] a, float[3] b) => (float[3] y) <int64 p = {1}> { s = SequenceConstruct(a, b)"
        " t = SequenceInsert(s, a) u = SequenceErase(t) y = SequenceAt(u, p) }"
    )
    result = converted(graph, 11, 10)
    assert [node.op_type for node in all_nodes(result)] == ["Identity"]
    assert not result.graph.initializer


@pytest.mark.parametrize(
    ("nodes", "output", "why"),
    [
        ("t = SequenceConstruct(a, a)", "seq(float[2]) t", "leaves its graph"),
        ("s = SequenceConstruct(a, a) y = SequenceAt(s, i)", "float[2] y", "run time"),
        ("s = SplitToSequence(b) y = SequenceLength(s)", "int64 y", "not fixed"),
    ],
)
def test_what_is_not_fixed_is_refused(nodes: str, output: str, why: str) -> None:
    with pytest.raises(onnx_convert.RefusedError) as refused:
        converted(f"(float[2] a, float[N] b, int64 i) => ({output}) {{ {nodes} }}", 11, 10)
    assert any(why in refusal.reason for refusal in refused.value.refusals)


def test_map_becomes_a_loop() -> None:
    graph = (
        "(float[5,2] x, float[2] c) => (float[5,2] y, int64[5] n) { s = SplitToSequence<keepdims=1>(x)"
        " m, k = SequenceMap(s, c) <body = g (float[1,2] p, float[2] q) => (float[1,2] r, int64[1] t)"
        " { r = Add(p, q) t = Constant<value_ints=[3]>() }>"
        " y = ConcatFromSequence<axis=0>(m) n = ConcatFromSequence<axis=0>(k) }"
    )
    x, c = np.arange(10, dtype=np.float32).reshape(5, 2), np.array([1, 2], np.float32)
    for target in (16, 13):
        y, n = run(converted(graph, 17, target), {"x": x, "c": c})
        np.testing.assert_array_equal(y, x + c)
        np.testing.assert_array_equal(n, [3] * 5)


def test_a_sequence_in_a_branch_of_its_own() -> None:
    graph = (
        "(float[2] a, bool c) => (float[2] y) <int64 p = {0}> { y = If(c) <then_branch = g () => (float[2] t)"
        " { s = SequenceConstruct(a) t = SequenceAt(s, p) }, else_branch = h () => (float[2] e) { e = Neg(a) }> }"
    )
    result = converted(graph, 13, 9)
    a = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run(result, {"a": a, "c": np.array(True)})[0], a)


def test_a_place_outside() -> None:
    graph = "(float[2] x) => (float[2] y) <int64 z = {3}> { s = SequenceConstruct(x) y = SequenceAt(s, z) }"
    with pytest.raises(onnx_convert.RefusedError, match="position 3"):
        onnx_convert.convert(model(graph, 11), to=10)
