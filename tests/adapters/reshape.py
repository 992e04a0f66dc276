# SPDX-License-Identifier: Apache-2.0
"""Reshape: `shape` becomes an input at 5; at 14 a 0 in it may be a size. Flatten: before 11 no axis is
negative."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites


def _attribute(x: str, y: str, shape: str, more: str = "") -> str:
    return f"(float[{x}] x) => (float[{y}] y) {{ y = Reshape<shape=[{shape}]{more}>(x) }}"


def _constant(x: str, y: str, shape: str, more: str = "") -> str:
    count = len(shape.split(","))
    return f"(float[{x}] x) => (float[{y}] y) <int64[{count}] s = {{{shape}}}> {{ y = Reshape{more}(x, s) }}"


def _run_time(x: str, y: str, count: int, more: str = "") -> str:
    return f"(float[{x}] x, int64[{count}] s) => (float[{y}] y) {{ y = Reshape{more}(x, s) }}"


ZERO = "<allowzero=1>"

RESHAPE: list[Row] = [
    rewrites("Reshape", 1, 5, _attribute("2,3,4", "6,4", "6,4"), into=["Reshape"]),
    rewrites("Reshape with 0 and -1", 1, 13, _attribute("2,3,4", "2,12", "0,-1"), into=["Reshape"]),
    rewrites(
        "Reshape with consumed_inputs", 1, 5, _attribute("2,6", "3,4", "3,4", ", consumed_inputs=[0]"), into=["Reshape"]
    ),
    # Inference does not know Reshape below 5, so sizes have to be stated by the graph.
    rewrites("Reshape with 0 and -1", 5, 1, _constant("N,3,4", "N,12", "0,-1"), into=["Reshape"]),
    refuses("Reshape at run time", 5, 1, _run_time("2,3", "?,?", 2), because="run time", feeds={"s": [3, 2]}),
    rewrites(
        "Reshape to known sizes",
        5,
        1,
        _run_time("2,3", "3,2", 2),
        may_refuse={"dims": "run time", "ranks": "run time", "function": "run time"},
        feeds={"s": [3, 2]},
    ),
    refuses(
        "Reshape to a 0 that the input does not have there",
        5,
        1,
        _run_time("2,0,2", "2,1,0", 3),
        because="run time",
        feeds={"s": [0, 1, -1]},
    ),
    rewrites(
        "Reshape to a 0 that the input has there",
        5,
        1,
        _run_time("2,0,2", "1,0,2", 3),
        may_refuse={"dims": "run time", "ranks": "run time", "function": "run time"},
        feeds={"s": [1, 0, 2]},
    ),
    keeps("Reshape", 5, 14, _constant("2,3,4", "6,4", "6,4")),
    rewrites("Reshape", 14, 9, _constant("2,3,4", "6,4", "6,4"), into=["Reshape"]),
    rewrites("Reshape, allowzero=0", 14, 13, _constant("2,3,4", "2,12", "0,-1", "<allowzero=0>"), into=["Reshape"]),
    rewrites("Reshape, allowzero=1, no zero", 14, 13, _constant("2,3,4", "6,4", "6,4", ZERO), into=["Reshape"]),
    rewrites("Reshape of nothing", 14, 13, _constant("0,3", "3,0", "3,0", ZERO)),
    rewrites("Reshape of nothing", 14, 7, _constant("2,0", "0,5,3", "0,5,3", ZERO)),
    rewrites("Reshape of nothing at run time", 14, 9, _run_time("2,0,3", "?,?", 2, ZERO), feeds={"s": [7, 0]}),
    rewrites(
        "Reshape of something at run time", 14, 9, _run_time("N,3", "?,?", 2, ZERO), feeds={"s": [3, 2]}, dims={"N": 2}
    ),
    rewrites(
        "Reshape with -1 at run time", 14, 9, _run_time("N,3", "?,?", 2, ZERO), feeds={"s": [-1, 2]}, dims={"N": 2}
    ),
    rewrites(
        "Reshape, what may be 0 is the input's",
        14,
        13,
        "(float[B,L,6] x, int64[4] s) => (float[B,L,2,3] y) { y = Reshape<allowzero=1>(x, s) }",
        into=["Reshape"],
        feeds={"s": [2, 0, 2, 3]},
        dims={"B": 2, "L": 0},
    ),
    rewrites(
        "Reshape, one size may be 0",
        14,
        9,
        "(float[N,6] x, int64[3] s) => (float[2,M,3] y) { y = Reshape<allowzero=1>(x, s) }",
        into=["Reshape"],
        feeds={"s": [2, 0, 3]},
        dims={"N": 0},
    ),
    rewrites(
        "Reshape, -1 beside what may be 0",
        14,
        9,
        "(float[N,6] x, int64[1] n) => (float[?,?,3] y) <int64[2] r = {-1,3}> "
        "{ s = Concat<axis=0>(n, r) y = Reshape<allowzero=1>(x, s) }",
        into=["Concat", "Reshape"],
        feeds={"n": [4]},
        dims={"N": 2},
    ),
    rewrites(
        "Reshape, two sizes may be 0",
        14,
        9,
        "(float[N,6] x, int64[3] s) => (float[A,B,3] y) { y = Reshape<allowzero=1>(x, s) }",
        into=["Cast", "Cast", "Reshape", "Tile", "Reshape"],
        feeds={"s": [0, 5, 3]},
        dims={"N": 0},
    ),
    rewrites(
        "Reshape to a shape of unknown length",
        14,
        9,
        "(float[M] x, int64[K] s) => (float[?,?] y) { y = Reshape<allowzero=1>(x, s) }",
        feeds={"s": [0, 4]},
        dims={"M": 0, "K": 2},
    ),
    *(
        rewrites(
            f"Reshape of nothing to {shape}",
            14,
            target,
            f"(float[{x}] x) => (float[{shape}] y) <int64[{len(shape.split(','))}] s = {{{shape}}}> "
            "{ y = Reshape<allowzero=1>(x, s) }",
            may_refuse={"ranks": "Tile", "dims": "Tile", "computed": "Tile"} if target < 6 else {},
        )
        for target in (13, 9)
        for x, shape in (("2,0", "0,0"), ("2,0", "0,3"), ("0,3", "0,0,3"), ("0", "2,0,0"), ("2,0", "3,0"))
    ),
    rewrites(
        "Reshape to a scalar",
        14,
        9,
        "(float[M] x, int64[K] s) => (float y) { y = Reshape<allowzero=1>(x, s) }",
        dims={"M": 1, "K": 0},
    ),
    refuses(
        "Reshape without a shape",
        1,
        5,
        "(float[2] x) => (float[2] y) { y = Reshape(x) }",
        because="shape is missing",
    ),
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


ROWS = [*RESHAPE, *FLATTEN]

test_rows = each_of(ROWS)
