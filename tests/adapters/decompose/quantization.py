# SPDX-License-Identifier: Apache-2.0
"""Quantization, and products of integers (10, 11), where they do not exist."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import all_nodes, run, validate

SCALE = {"s": 0.05, "z": 3}


def conv(x: str, w: str, y: str, attributes: str = "", zeros: bool = False) -> str:
    more, given = (", uint8 p, int8 q", ", p, q") if zeros else ("", "")
    return f"(uint8[{x}] x, int8[{w}] w{more}) => (int32[{y}] y) {{ y = ConvInteger{attributes}(x, w{given}) }}"


LINEAR: list[Row] = [
    rewrites(
        "QuantizeLinear to uint8",
        10,
        7,
        "(float[2,5] x, float s, uint8 z) => (uint8[2,5] y) { y = QuantizeLinear(x, s, z) }",
        feeds={**SCALE, "x": [[0.0, 0.025, 0.075, 1e9, -1e9], [0.125, 0.175, 1.0, -0.2, 12.6]]},
    ),
    rewrites(
        "QuantizeLinear to int8",
        13,
        9,
        "(float[4] x, int8 z) => (int8[4] y) <float s = {0.5}> { y = QuantizeLinear(x, s, z) }",
        feeds={"z": -7, "x": [-100.0, 0.25, 0.75, 100.0]},
    ),
    rewrites(
        "QuantizeLinear without a zero point",
        10,
        9,
        "(float x, float s) => (uint8 y) { y = QuantizeLinear(x, s) }",
        feeds={"x": 1.3, "s": 0.1},
    ),
    rewrites(
        "QuantizeLinear of integers",
        10,
        9,
        "(int32[3] x, float s, uint8 z) => (uint8[3] y) { y = QuantizeLinear(x, s, z) }",
        feeds=SCALE,
    ),
    rewrites(
        "DequantizeLinear",
        10,
        7,
        "(uint8[2,3] x, float s, uint8 z) => (float[2,3] y) { y = DequantizeLinear(x, s, z) }",
        feeds=SCALE,
        options={"exact": True},
    ),
    rewrites(
        "DequantizeLinear with a constant",
        13,
        9,
        "(int8[4] x) => (float[4] y) <float s = {0.5}, int8 z = {0}> { y = DequantizeLinear(x, s, z) }",
        into=["Cast", "Mul"],
    ),
    rewrites(
        "DequantizeLinear of int32",
        10,
        9,
        "(int32[3] x, float s) => (float[3] y) { y = DequantizeLinear(x, s) }",
        feeds={"s": 0.5, "x": [2**24 + 1, -5, 7]},
        options={"exact": True},
    ),
    rewrites(
        "DequantizeLinear along an axis",
        13,
        9,
        "(int8[2,3] x, float[3] s, int8[3] z) => (float[2,3] y) { y = DequantizeLinear<axis=1>(x, s, z) }",
    ),
    rewrites(
        "DynamicQuantizeLinear",
        11,
        7,
        "(float[2,4] x) => (uint8[2,4] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }",
    ),
    rewrites(
        "DynamicQuantizeLinear of nothing but zeros",
        11,
        9,
        "(float[3] x) => (uint8[3] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }",
        feeds={"x": [0.0, 0.0, 0.0]},
    ),
]

PRODUCTS: list[Row] = [
    rewrites(
        f"MatMulInteger with {name}",
        10,
        7,
        f"(uint8[2,3] a, int8[3,4] b{more}) => (int32[2,4] y) {{ y = MatMulInteger(a, b{given}) }}",
        feeds=feeds,
        options={"exact": True},
        may_refuse={"ranks": "rank"} if "p" in feeds else {},
    )
    for name, more, given, feeds in (
        ("no zero points", "", "", {}),
        ("zero points", ", uint8 p, int8 q", ", p, q", {"p": 200, "q": -100}),
        ("one zero point", ", int8 q", ", , q", {"q": -100}),
        ("a zero point for each column", ", uint8 p, int8[4] q", ", p, q", {"p": 7, "q": [1, -2, 3, 127]}),
    )
]
PRODUCTS += [
    rewrites(
        "MatMulInteger of long rows",
        13,
        9,
        "(uint8[2,1000] a, int8[1000,2] b) => (int32[2,2] y) { y = MatMulInteger(a, b) }",
        feeds={"a": [[255] * 1000, [254, 255] * 500], "b": [[127, -128]] * 1000},
        options={"exact": True},
    ),
    rewrites("ConvInteger", 10, 7, conv("1,2,5,5", "3,2,3,3", "1,3,3,3")),
    rewrites(
        "ConvInteger, padded",
        10,
        9,
        conv("1,1,4,4", "2,1,3,3", "1,2,4,4", "<pads=[1,1,1,1]>", zeros=True),
        feeds={"p": 9, "q": 1},
    ),
    rewrites(
        "ConvInteger of many products",
        10,
        9,
        conv("1,300,3", "1,300,2", "1,1,2"),
        feeds={"x": [[[255, 254, 255]] * 300], "w": [[[127, -128]] * 300]},
    ),
    rewrites(
        "QLinearMatMul",
        10,
        7,
        "(uint8[2,3] a, uint8 p, int8[3,4] b, int8 q, uint8 r) => (uint8[2,4] y)"
        " <float s = {0.02}, float t = {0.03}, float u = {0.01}> { y = QLinearMatMul(a, s, p, b, t, q, u, r) }",
        feeds={"p": 3, "q": -2, "r": 100},
        may_refuse={"ranks": "rank"},
    ),
    rewrites(
        "QLinearConv",
        10,
        7,
        "(uint8[1,2,4,4] x, uint8 p, int8[3,2,3,3] w, int8 q, uint8 r) => (uint8[1,3,2,2] y)"
        " <float s = {0.02}, float[3] t = {0.03, 0.02, 0.01}, float u = {0.01}, int32[3] b = {10, -20, 30}>"
        " { y = QLinearConv(x, s, p, w, t, q, u, r, b) }",
        feeds={"p": 3, "q": 0, "r": 100},
    ),
]

# Cast has no inference below opset 6: what is known of the first product must be stated for the second one, too.
TWICE: list[Row] = [
    rewrites(
        "MatMulInteger twice",
        10,
        5,
        "(int8[2,3] a, uint8[3,4] b) => (int32[2,4] y, int32[2,4] z) "
        "{ y = MatMulInteger(a, b) z = MatMulInteger(a, b) }",
    ),
]


ROWS = [*LINEAR, *PRODUCTS, *TWICE]

test_rows = each_of(ROWS)


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


@pytest.mark.parametrize("dtype", ["float8e4m3fn", "float8e5m2", "int4", "uint4", "float4e2m1"])
def test_narrow_floats_are_refused(dtype: str) -> None:
    graph = f"(float[3] x, float s, {dtype} z) => ({dtype}[3] y) {{ y = QuantizeLinear(x, s, z) }}"
    with pytest.raises(onnx_convert.RefusedError):
        onnx_convert.convert(model(graph, 23), to=9, types="cast")
