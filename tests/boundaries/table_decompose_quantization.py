# SPDX-License-Identifier: Apache-2.0
"""Quantization (10, 11) where it does not exist."""

from __future__ import annotations

from boundaries.rows import Row, rewrites

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

ROWS = [*TWICE, *LINEAR, *PRODUCTS]
