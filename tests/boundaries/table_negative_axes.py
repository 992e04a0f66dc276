# SPDX-License-Identifier: Apache-2.0
"""Concat, Split, Compress, Flatten, Gather, OneHot: before 11 no axis is negative, and no index of Gather."""

from __future__ import annotations

from boundaries.rows import Row, keeps, rewrites


def _concat(axis: int, y: str, x: str = "2,3,4", z: str = "2,3,4") -> str:
    return f"(float[{x}] x, float[{z}] z) => (float[{y}] y) {{ y = Concat<axis={axis}>(x, z) }}"


CONCAT: list[Row] = [
    rewrites("Concat by default", 1, 5, "(float[2,3] x) => (float[2,6] y) { y = Concat(x, x) }", into=["Concat"]),
    rewrites("Concat by default", 1, 13, "(float[2,3] x) => (float[2,6] y) { y = Concat(x, x) }", into=["Concat"]),
    keeps("Concat", 1, 13, _concat(1, "2,6,4")),
    keeps("Concat", 13, 1, _concat(1, "2,6,4")),
    rewrites("Concat at the end", 11, 10, _concat(-1, "2,3,8"), into=["Concat"]),
    rewrites("Concat at the beginning", 13, 1, _concat(-3, "4,3,4")),
    rewrites("Concat in the middle", 13, 9, _concat(-2, "2,5,4", z="2,2,4"), into=["Concat"]),
    rewrites("Concat in the middle of sizes N", 11, 7, _concat(-2, "N,?,M", "N,3,M", "N,2,M")),
    rewrites("Concat of nothing with something", 11, 9, _concat(-1, "2,3", "2,0", "2,3")),
    rewrites("Concat of nothing", 11, 9, _concat(-1, "N,?,3", "N,2,3", "N,2,0"), dims={"N": 0}),
    rewrites("Concat of vectors", 11, 9, _concat(-1, "5", "2", "3"), into=["Concat"]),
    rewrites("Concat of strings", 11, 9, "(string[2] x, string[1] z) => (string[3] y) { y = Concat<axis=-1>(x, z) }"),
]


def _split(attributes: str, p: str, q: str) -> str:
    return f"(float[2,3,4] x) => (float[{p}] p, float[{q}] q) {{ p, q = Split<{attributes}>(x) }}"


SPLIT: list[Row] = [
    keeps("Split", 11, 5, _split("axis=2", "2,3,2", "2,3,2")),
    rewrites("Split at the end", 11, 10, _split("axis=-1", "2,3,2", "2,3,2"), into=["Split"]),
    rewrites("Split in the middle", 11, 9, _split("axis=-2, split=[1,2]", "2,1,4", "2,2,4"), into=["Split"]),
    rewrites("Split into one", 11, 9, "(float[2,3] x) => (float[2,3] p) { p = Split<axis=-1>(x) }", into=["Split"]),
]

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


def _flatten(axis: int, x: str, y: str) -> str:
    return f"(float[{x}] x) => (float[{y}] y) {{ y = Flatten<axis={axis}>(x) }}"


FLATTEN: list[Row] = [
    *(
        rewrites(f"Flatten at {axis}", 11, 9, _flatten(axis, "2,3,4", y), into=["Flatten"])
        for axis, y in ((-1, "6,4"), (-2, "2,12"), (-3, "1,24"))
    ),
    rewrites("Flatten of no columns", 11, 9, _flatten(-1, "2,3,0", "6,0"), into=["Flatten"]),
    rewrites("Flatten of no rows", 11, 9, _flatten(-1, "2,0,4", "0,4"), into=["Flatten"]),
    keeps("Flatten", 13, 1, _flatten(2, "2,3,4", "6,4")),
]


def _gather(axis: int, y: str, indices: str, x: str = "2,3,4", kind: str = "int64[2]") -> str:
    return f"(float[{x}] x) => (float[{y}] y) <{kind} i = {{{indices}}}> {{ y = Gather<axis={axis}>(x, i) }}"


def _gather_at_run_time(axis: int, y: str, kind: str = "int64[2]") -> str:
    return f"(float[2,3,4] x, {kind} i) => (float[{y}] y) {{ y = Gather<axis={axis}>(x, i) }}"


GATHER: list[Row] = [
    keeps("Gather", 11, 9, _gather(1, "2,2,4", "0,2")),
    keeps("Gather", 1, 13, _gather(1, "2,2,4", "0,2")),
    rewrites("Gather at the end", 11, 10, _gather(-1, "2,3,2", "3,0"), into=["Gather"]),
    rewrites("Gather in the middle", 11, 9, _gather(-2, "2,2,4", "2,0"), into=["Gather"]),
    rewrites("Gather the last", 11, 10, _gather(1, "2,2,4", "-1,0"), into=["Gather"]),
    rewrites("Gather the last in int32", 13, 9, _gather(-2, "2,2,4", "-1,-3", kind="int32[2]"), into=["Gather"]),
    rewrites("Gather one", 11, 9, _gather(-1, "2,3", "-1", kind="int64"), into=["Gather"]),
    rewrites("Gather the last of N", 11, 7, _gather(0, "?,3", "-1,0", x="N,3")),
    rewrites("Gather at run time", 11, 10, _gather_at_run_time(1, "2,2,4"), feeds={"i": [-1, 2]}),
    rewrites("Gather in int32 at run time", 11, 9, _gather_at_run_time(-2, "2,2,4", "int32[2]"), feeds={"i": [-3, 2]}),
    rewrites("Gather a row at run time", 13, 7, _gather_at_run_time(0, "3,4", "int64"), feeds={"i": -1}),
    rewrites(
        "Gather a matrix at run time", 11, 9, _gather_at_run_time(-1, "2,3,1,2", "int64[1,2]"), feeds={"i": [[-4, 3]]}
    ),
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

ROWS = [*CONCAT, *SPLIT, *COMPRESS, *FLATTEN, *GATHER, *ONE_HOT]
