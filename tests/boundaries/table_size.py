# SPDX-License-Identifier: Apache-2.0
"""Size and its like: operators whose boundaries only add dtypes, so that the node passes as it is or not at all; and
the dtypes that only a Cast carries across."""

from __future__ import annotations

from itertools import pairwise

from boundaries.rows import Row, keeps, refuses, rewrites


def _size(dtype: str) -> str:
    return f"({dtype}[2,3] x) => (int64 y) {{ y = Size(x) }}"


# dtype -> the opset that brought it to Size (and to every other operator)
FLOORS = {
    "bfloat16": 13,
    "float8e4m3fn": 19,
    "float8e5m2": 19,
    "int4": 21,
    "uint4": 21,
    "float4e2m1": 23,
    "float8e8m0": 24,
    "int2": 25,
    "uint2": 25,
}
PLAIN = ("float", "double", "float16", "int8", "int64", "uint16", "bool", "string")
VERSIONS = (1, 13, 19, 21, 23, 24, 25)

SIZE: list[Row] = [
    *(keeps(f"Size of {dtype}", 1, 25, _size(dtype)) for dtype in PLAIN),
    *(keeps(f"Size of {dtype}", 25, 1, _size(dtype)) for dtype in PLAIN),
    *(keeps("Size", below, above, _size("float")) for below, above in pairwise(VERSIONS)),
    *(keeps("Size", above, below, _size("float")) for below, above in pairwise(VERSIONS)),
    *(keeps(f"Size of {dtype}", floor, 25, _size(dtype)) for dtype, floor in FLOORS.items() if floor < 25),
    *(keeps(f"Size of {dtype}", 25, floor, _size(dtype)) for dtype, floor in FLOORS.items() if floor < 25),
    *(refuses(f"Size of {d}", floor, floor - 1, _size(d), because=d) for d, floor in FLOORS.items()),
]

COMPATIBLE: list[Row] = [
    keeps("Abs", 6, 13, "(float[2,3] x) => (float[2,3] y) { y = Abs(x) }"),
    keeps("Abs", 13, 6, "(float[2,3] x) => (float[2,3] y) { y = Abs(x) }"),
    keeps("Transpose", 1, 25, "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }"),
    keeps("Transpose", 25, 1, "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }"),
    keeps("Identity", 25, 1, "(int8[2] x) => (int8[2] y) { y = Identity(x) }"),
    keeps("MatMul", 1, 13, "(float[2,3] a, float[3,2] b) => (float[2,2] y) { y = MatMul(a, b) }"),
    keeps("Shape", 1, 15, "(float[2,3] x) => (int64[2] y) { y = Shape(x) }"),
]


def _sum_of(dtype: str, operator: str = "Add") -> str:
    return f"({dtype}[6] a, {dtype}[6] b) => ({dtype}[6] y) {{ y = {operator}(a, b) }}"


# Sums, differences and products that leave the dtype, and must come back wrapped around.
WRAPPING = {
    "int8": ([127, -128, 100, -100, 1, 0], [1, -1, 100, -100, -1, 127]),
    "uint8": ([255, 0, 200, 16, 1, 128], [1, 1, 100, 16, 255, 2]),
    "int16": ([32767, -32768, 300, -300, 1, 0], [1, -1, 300, 300, -1, 9]),
    "uint16": ([65535, 0, 60000, 65535, 1, 256], [1, 1, 6000, 65535, 65535, 256]),
}

SMALL_INTEGERS: list[Row] = [
    row
    for dtype, (a, b) in WRAPPING.items()
    for operator in ("Add", "Sub", "Mul")
    for row in (
        refuses(f"{operator} of {dtype}", 14, 13, _sum_of(dtype, operator), because=dtype),
        rewrites(
            f"{operator} of {dtype} with Casts",
            14,
            13,
            _sum_of(dtype, operator),
            feeds={"a": a, "b": b},
            options={"types": "cast"},
            into=["Cast", "Cast", operator, "Cast"],
        ),
    )
] + [
    keeps("Add of int8", 14, 25, _sum_of("int8")),
    keeps("Add of int32", 14, 7, _sum_of("int32")),
    keeps("Add of int64", 13, 14, _sum_of("int64")),
    refuses("Relu of int8", 14, 13, "(int8[4] x) => (int8[4] y) { y = Relu(x) }", because="int8"),
    rewrites(
        "Relu of int8 with Casts",
        14,
        13,
        "(int8[4] x) => (int8[4] y) { y = Relu(x) }",
        feeds={"x": [-128, -1, 0, 127]},
        options={"types": "cast"},
    ),
    refuses("Neg of int32", 6, 5, "(int32[4] x) => (int32[4] y) { y = Neg(x) }", because="int32"),
    refuses("Add of int32", 6, 5, _sum_of("int32"), because="int32"),
    rewrites("Max of int64", 12, 11, "(int64[4] a, int64[4] b) => (int64[4] y) { y = Max(a, b) }"),
]

ROWS = [*SIZE, *COMPATIBLE, *SMALL_INTEGERS]
