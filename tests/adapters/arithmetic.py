# SPDX-License-Identifier: Apache-2.0
"""Mod (28: of floats, too), BitShift (28: of signed integers), Range (27: of float16)."""

from __future__ import annotations

from math import inf, nan

import numpy as np
from texts import model

import onnx_convert
from boundaries import Row, each_of, keeps, refuses, rewrites
from oracle import run

# ---- Mod

DIVIDENDS = [5.5, -5.5, 5.5, -5.5, 0.0, -0.0, 6.0, inf, 3.0, -3.0, 3.0, 2.0, 0.0, 1e-3, -6.0, 1e6]
DIVISORS = [2.0, 2.0, -2.0, -2.0, -3.0, 3.0, 3.0, 2.0, inf, inf, -inf, nan, inf, -7.0, 3.0, -7.0]
PAIRS = {"a": DIVIDENDS, "b": DIVISORS}


def mod(dtype: str, attributes: str = "") -> str:
    return f"({dtype}[16] a, {dtype}[16] b) => ({dtype}[16] y) {{ y = Mod{attributes}(a, b) }}"


STRETCHED = "(float[2,1] a, float[3] b) => (float[2,3] y) { y = Mod(a, b) }"

MODS: list[Row] = [
    rewrites("Mod of floats", 28, 27, mod("float"), feeds=PAIRS, options={"exact": True}),
    rewrites("Mod of floats", 28, 11, mod("float"), feeds=PAIRS),
    rewrites("Mod of double", 28, 13, mod("double"), feeds=PAIRS, options={"exact": True}),
    rewrites("Mod of floats that chunk", 28, 24, STRETCHED, nodes=9),
    rewrites("Mod of a scalar", 28, 27, "(float a, float b) => (float y) { y = Mod(a, b) }"),
    rewrites("Mod of nothing", 28, 27, "(float[N] a, float[1] b) => (float[N] y) { y = Mod(a, b) }", dims={"N": 0}),
    keeps("Mod of floats as in C", 28, 10, mod("float", "<fmod=1>")),
    keeps("Mod of floats as in C", 10, 28, mod("float", "<fmod=1>")),
    *(
        keeps(f"Mod of {dtype}", *way, mod(dtype))
        for dtype in ("int32", "uint8", "int64")
        for way in ((28, 10), (10, 28))
    ),
]

# ---- BitShift

COUNTS = {8: [0, 1, 7, 8, 9, 100], 16: [0, 1, 15, 16, 31, 99], 32: [0, 1, 31, 32, 33, 64], 64: [0, 1, 63, 64, 65, 127]}


def shift(dtype: str, direction: str, constant: str = "") -> str:
    given = f"<{dtype}[6] c = {{{constant}}}> " if constant else ""
    inputs = f"{dtype}[6] x" if constant else f"{dtype}[6] x, {dtype}[6] c"
    return f'({inputs}) => ({dtype}[6] y) {given}{{ y = BitShift<direction="{direction}">(x, c) }}'


def values(dtype: str, *, negative: bool = False) -> dict[str, list[int]]:
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    counts = [-count for count in COUNTS[bits]] if negative else COUNTS[bits]
    if dtype.startswith("u"):
        return {"x": [2**bits - 1, 1, 5, 2 ** (bits - 1), 77, 0], "c": counts}
    return {"x": [-(2 ** (bits - 1)), -1, 2 ** (bits - 1) - 1, -5, 5, -77], "c": counts}


SHIFTS: list[Row] = [
    *(
        rewrites(f"BitShift of {dtype} to the {direction}", 28, low, shift(dtype, direction), feeds=values(dtype))
        for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
        for direction in ("LEFT", "RIGHT")
        for low in (27, 11)
    ),
    *(
        rewrites(
            f"BitShift of {dtype} to the {direction} by negative counts",
            28,
            18,
            shift(dtype, direction),
            feeds=values(dtype, negative=True),
        )
        for dtype in ("int8", "int64")
        for direction in ("LEFT", "RIGHT")
    ),
    rewrites("BitShift by constants", 28, 11, shift("uint8", "LEFT", "0,1,2,3,7,5"), into=["BitShift"]),
    rewrites(
        "BitShift of int8 by constants",
        28,
        11,
        shift("int8", "LEFT", "0,1,2,3,7,5"),
        into=["Cast", "Cast", "BitShift", "Cast"],
    ),
    rewrites("BitShift of int8 to the right by constants", 28, 11, shift("int8", "RIGHT", "0,1,2,3,7,50")),
    keeps("BitShift of uint8", 11, 28, shift("uint8", "LEFT", "0,1,2,3,7,5")),
]

# ---- Range


def range_of(dtype: str, stash: str = "") -> str:
    return f"({dtype} a, {dtype} b, {dtype} d) => ({dtype}[?] y) {{ y = Range{stash}(a, b, d) }}"


UP = {"a": 1, "b": 8, "d": 2}

RANGES: list[Row] = [
    rewrites("Range of float16", 27, 26, range_of("float16"), feeds=UP, into=["Cast", "Cast", "Cast", "Range", "Cast"]),
    rewrites(
        "Range of float16 downwards",
        27,
        11,
        range_of("float16", "<stash_type=1>"),
        feeds={"a": 3, "b": -1.5, "d": -0.1},
    ),
    rewrites("Range of float16 counted in double", 27, 13, range_of("float16", "<stash_type=11>"), feeds=UP),
    rewrites("Range of float16 that is empty", 27, 21, range_of("float16"), feeds={"a": 3, "b": 1, "d": 1}),
    rewrites("Range of bfloat16", 27, 13, range_of("bfloat16"), feeds=UP, may_refuse={"branch": "bfloat16"}),
    rewrites(
        "Range of int64 with a dtype to count in", 27, 11, range_of("int64", "<stash_type=1>"), feeds=UP, into=["Range"]
    ),
    rewrites("Range of double", 28, 11, range_of("double"), feeds=UP, into=["Range"]),
    keeps("Range of double", 11, 28, range_of("double"), feeds=UP),
    refuses(
        "Range that counts in float16",
        27,
        26,
        "(float16 a, float16 b, float16 c) => (float16[N] y) { y = Range<stash_type=10>(a, b, c) }",
        because="it counts in float16",
    ),
]


ROWS = [*MODS, *SHIFTS, *RANGES]

test_rows = each_of(ROWS)


def test_a_shift_to_the_right_overflows_nowhere() -> None:
    """So it holds below 6 too, where integers are multiplied as floats: only very large ones are not exact there."""
    graph = '(int32[4] x, int32[4] c) => (int32[4] y) { y = BitShift<direction="RIGHT">(x, c) }'
    source = model(graph, 28)
    feeds = {"x": np.array([-8, -1, 9, -(2**31)], np.int32), "c": np.array([1, 3, 2, 31], np.int32)}
    result = onnx_convert.convert(source, to=5, types="cast", allow={"conditional"}).model
    (y,) = run(result, feeds)
    assert y.tolist() == [-4, -1, 2, -1]
