# SPDX-License-Identifier: Apache-2.0
"""Quantization and products of integers without the operators for them; sequences without sequences."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from oracle import all_nodes, run, validate


def converted(graph: str, source: int, target: int) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target).model
    validate(result)
    return result


# ---- rounding and saturation


@pytest.mark.parametrize(("dtype", "low", "high"), [("uint8", 0, 255), ("int8", -128, 127)])
def test_every_half_goes_to_the_even_neighbour(dtype: str, low: int, high: int) -> None:
    graph = f"(float[N] x, {dtype} z) => ({dtype}[N] y) <float s = {{0.5}}> {{ y = QuantizeLinear(x, s, z) }}"
    halves = np.arange(-300, 301).astype(np.float32) / 4  # every x/s is a multiple of one half
    for zero in (low, 0, 7, high):
        (y,) = run(converted(graph, 10, 9), {"x": halves, "z": np.array(zero, dtype)})
        np.testing.assert_array_equal(y, np.clip(np.rint(halves / np.float32(0.5)) + zero, low, high).astype(dtype))


def test_what_is_beyond_saturates() -> None:
    graph = "(float[4] x) => (uint8[4] y) <float s = {0.1}> { y = QuantizeLinear(x, s) }"
    x = np.array([-np.inf, -1e30, 1e30, np.inf], np.float32)
    np.testing.assert_array_equal(run(converted(graph, 10, 7), {"x": x})[0], [0, 0, 255, 255])


def test_every_byte_is_dequantized_exactly() -> None:
    graph = "(uint8[256] x, float s, uint8 z) => (float[256] y) { y = DequantizeLinear(x, s, z) }"
    source, result = model(graph, 10), converted(graph, 10, 8)
    for zero in (0, 128, 255):
        feeds = {"x": np.arange(256).astype(np.uint8), "s": np.array(0.0123, np.float32), "z": np.array(zero, np.uint8)}
        np.testing.assert_array_equal(run(result, feeds)[0], run(source, feeds)[0])


# ---- sums of products


@pytest.mark.parametrize(("length", "dtype"), [(258, "FLOAT"), (259, "DOUBLE"), (5000, "DOUBLE")])
def test_the_largest_sums_are_exact(length: int, dtype: str) -> None:
    graph = (
        f"(uint8[1,{length}] a, uint8[{length},2] b, uint8 p, uint8 q) => (int32[1,2] y)"
        " { y = MatMulInteger(a, b, p, q) }"
    )
    result = converted(graph, 10, 9)
    casts = {node.attribute[0].i for node in all_nodes(result) if node.op_type == "Cast"}
    assert getattr(onnx.TensorProto, dtype) in casts
    a, b = np.full((1, length), 255, np.uint8), np.full((length, 2), 255, np.uint8)
    b[-1, 1] = 254
    feeds = {"a": a, "b": b, "p": np.array(0, np.uint8), "q": np.array(0, np.uint8)}
    np.testing.assert_array_equal(run(result, feeds)[0], a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize("channels", [2, 200, 2056])
def test_convolutions_are_exact_with_floats_alone(channels: int) -> None:
    graph = f"(uint8[1,{channels},3] x, int8[2,{channels},2] w, int8[2] q) => (int32[1,2,2] y) <uint8 p = {{1}}>"
    result = converted(f"{graph} {{ y = ConvInteger(x, w, p, q) }}", 10, 9)
    random = np.random.default_rng(0)
    x = random.integers(250, 256, (1, channels, 3)).astype(np.uint8)
    w = random.choice([-128, 127], (2, channels, 2)).astype(np.int8)
    q = np.array([127, -128], np.int8)
    wide, kernel = x.astype(np.int64) - 1, w.astype(np.int64) - q.astype(np.int64).reshape(2, 1, 1)
    wanted = [[(wide[0, :, place : place + 2] * kernel[out]).sum() for place in range(2)] for out in range(2)]
    np.testing.assert_array_equal(run(result, {"x": x, "w": w, "q": q})[0], [wanted])


def test_a_zero_point_for_each_row() -> None:
    graph = "(uint8[2,3] a, uint8[3,2] b, uint8[2] p) => (int32[2,2] y) { y = MatMulInteger(a, b, p) }"
    a, b = np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(6, dtype=np.uint8).reshape(3, 2)
    feeds = {"a": a, "b": b, "p": np.array([1, 5], np.uint8)}
    wanted = (a.astype(np.int64) - [[1], [5]]) @ b.astype(np.int64)
    np.testing.assert_array_equal(run(converted(graph, 10, 9), feeds)[0], wanted)


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


def test_a_shift_to_the_right_overflows_nowhere() -> None:
    """So it holds below 6 too, where integers are multiplied as floats: only very large ones are not exact there."""
    graph = '(int32[4] x, int32[4] c) => (int32[4] y) { y = BitShift<direction="RIGHT">(x, c) }'
    source = model(graph, 28)
    feeds = {"x": np.array([-8, -1, 9, -(2**31)], np.int32), "c": np.array([1, 3, 2, 31], np.int32)}
    result = onnx_convert.convert(source, to=5, types="cast", allow={"conditional"}).model
    (y,) = run(result, feeds)
    assert y.tolist() == [-4, -1, 2, -1]


@pytest.mark.parametrize(("operator", "of_nothing"), [("ReduceMax", False), ("ReduceMin", True)])
@pytest.mark.parametrize("target", [17, 11, 9])
def test_the_extremum_of_no_booleans(operator: str, of_nothing: bool, target: int) -> None:
    """What int32 has in its place is no boolean. How many there are is known at run time only."""
    graph = f"(bool[N,3] x) => (bool[1,3] y) <int64[1] axes = {{0}}> {{ y = {operator}(x, axes) }}"
    conversion = onnx_convert.convert(model(graph, 20), to=target, types="cast")
    assert conversion.report.form == "exact"
    for rows in (0, 2):
        x = np.array([[True, False, True], [False, False, True]])[:rows]
        (y,) = run(conversion.model, {"x": x})
        expected = [[of_nothing] * 3] if not rows else [getattr(x, operator.removeprefix("Reduce").lower())(0)]
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("shape", "allow", "form"),
    [("2,3", (), "exact"), ("N,3", ("conditional",), "conditional"), ("N,3", (), ""), ("0,3", ("conditional",), "")],
)
def test_the_extremum_of_small_integers(shape: str, allow: tuple[str, ...], form: str) -> None:
    """Carried through int32 it is right if there is anything to reduce: known, not known, or known to be wrong."""
    graph = f"(uint8[{shape}] x) => (uint8[1,3] y) {{ y = ReduceMax<axes=[0]>(x) }}"
    if not form:
        with pytest.raises(onnx_convert.RefusedError, match=r"uint8|empty axis"):
            onnx_convert.convert(model(graph, 13), to=11, types="cast", allow=allow)
        return
    conversion = onnx_convert.convert(model(graph, 13), to=11, types="cast", allow=allow)
    assert conversion.report.form == form
    (y,) = run(conversion.model, {"x": np.array([[1, 200, 3], [9, 7, 255]], np.uint8)})
    assert y.tolist() == [[9, 200, 255]]
