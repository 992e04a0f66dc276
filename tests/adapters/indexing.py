# SPDX-License-Identifier: Apache-2.0
"""Compress, OneHot: before 11 no axis is negative, but for -1 of OneHot."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites

# Inference does not know Compress below 11, so its output has to be stated by the graph.
COMPRESS: list[Row] = [
    rewrites(
        f"Compress at {axis}",
        11,
        9,
        f"(float[2,3,4] x, bool[2] c) => (float[{y}] y) {{ y = Compress<axis={axis}>(x, c) }}",
        into=["Compress"],
        feeds={"c": [False, True]},
    )
    for axis, y in ((-1, "2,3,?"), (-2, "2,?,4"), (-3, "?,3,4"))
]


def _one_hot(attributes: str, y: str) -> str:
    return (
        f"(int64[2,3] i) => (float[{y}] y) <int64 d = {{8}}, float[2] v = {{0.0, 1.0}}> "
        f"{{ y = OneHot{attributes}(i, d, v) }}"
    )


ONE_HOT: list[Row] = [
    rewrites("OneHot at -2", 11, 9, _one_hot("<axis=-2>", "2,8,3"), into=["OneHot"]),
    rewrites("OneHot at -3", 11, 9, _one_hot("<axis=-3>", "8,2,3"), into=["OneHot"]),
    keeps("OneHot", 11, 9, _one_hot("", "2,3,8")),
    keeps("OneHot at 1", 11, 9, _one_hot("<axis=1>", "2,8,3")),
]


EDGES: list[Row] = [
    rewrites(
        f"OneHot of constants below zero at {axis}",
        11,
        10,
        f"(float[2] v) => (float[?,?] y) <int64[4] i = {{-1,0,-3,-4}}, int64 d = {{3}}> "
        f"{{ y = OneHot<axis={axis}>(i, d, v) }}",
    )
    for axis in (-1, 0, -2)
] + [
    rewrites(
        "OneHot of constants below zero and a depth at run time",
        11,
        10,
        "(float[2] v, int32 d) => (float[?,?] y) <int64[4] i = {-1,0,-3,-4}> { y = OneHot(i, d, v) }",
        feeds={"d": 3},
    ),
]

ROWS = [*COMPRESS, *ONE_HOT, *EDGES]

test_rows = each_of(ROWS)
