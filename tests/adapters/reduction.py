# SPDX-License-Identifier: Apache-2.0
"""The reductions: `axes` moves from attribute to input (ReduceSum at 13, the others at 18), and before 11 no axis is
negative. ArgMax, ArgMin: the last of equal elements (12)."""

from __future__ import annotations

from axes_texts import attribute, constant, run_time

from boundaries import Row, each_of, keeps, rewrites

# ---- reductions

CUBE = "2,3,4"
DROP = "keepdims=0"
NOOP = "noop_with_empty_axes=1"

# A reduction over run-time axes goes one axis at a time, so the rank has to be known.
RANK = {"ranks": "rank"}


def _axes_up(op: str, last: int) -> list[Row]:
    """`last` is the last opset at which `axes` is an attribute."""
    above = last + 1
    return [
        rewrites(f"{op} one", last, above, attribute(op, CUBE, "2,1,4", "1"), into=[op]),
        rewrites(f"{op} two, dropped", last, above, attribute(op, CUBE, "3", "0,-1", DROP), into=[op]),
        keeps(f"{op} all", last, above, attribute(op, CUBE, "1,1,1")),
        keeps(f"{op} all, dropped", last, above, attribute(op, CUBE, "", more=DROP)),
        rewrites(f"{op} from the beginning", 1, above, attribute(op, CUBE, "2,3", "2", DROP), into=[op]),
    ]


def _axes_down(op: str, first: int) -> list[Row]:
    """`first` is the first opset at which `axes` is an input."""
    below = first - 1

    def at_run_time(name: str, y: str, count: int | str, more: str = "", **columns: object) -> Row:
        graph = run_time(op, CUBE, y, count, more)
        return rewrites(f"{op} at run time, {name}", first, below, graph, may_refuse=RANK, **columns)

    return [
        rewrites(f"{op} one", first, below, constant(op, CUBE, "2,1,4", "1"), into=[op]),
        rewrites(f"{op} two, dropped", first, below, constant(op, CUBE, "3", "0,-1", DROP), into=[op]),
        rewrites(f"{op} one, noop", first, below, constant(op, CUBE, "2,1,4", "1", NOOP), into=[op]),
        keeps(f"{op} all", first, below, attribute(op, CUBE, "1,1,1")),
        rewrites(f"{op} all by an empty list", first, below, constant(op, CUBE, "", "", DROP), into=[op]),
        rewrites(
            f"{op} all, noop=0", first, below, attribute(op, CUBE, "1,1,1", more="noop_with_empty_axes=0"), into=[op]
        ),
        rewrites(f"{op} nothing", first, below, attribute(op, CUBE, CUBE, more=NOOP)),
        rewrites(f"{op} nothing by an empty list", first, below, constant(op, CUBE, CUBE, "", NOOP)),
        rewrites(f"{op} negative", first, 10, constant(op, CUBE, "2,3,1", "-1")),
        at_run_time("two", "?,?,?", 2, feeds={"i": [0, -1]}),
        at_run_time("one, dropped", "?,?", 1, DROP, feeds={"i": [-2]}),
        at_run_time("an empty list", "?,?,?", "K", dims={"K": 0}),
        at_run_time("an empty list, noop", "?,?,?", "K", NOOP, dims={"K": 0}),
    ]


def _negative(op: str) -> list[Row]:
    return [
        rewrites(f"{op} negative", 11, 10, attribute(op, CUBE, "2,3,1", "-1"), into=[op], may_refuse=RANK),
        rewrites(
            f"{op} two negative, dropped", 12, 1, attribute(op, CUBE, "3", "-1,0", DROP), into=[op], may_refuse=RANK
        ),
        keeps(f"{op} positive", 11, 10, attribute(op, CUBE, "2,3,1", "2")),
        keeps(f"{op} all", 11, 1, attribute(op, CUBE, "1,1,1")),
    ]


AT_18 = (
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
)

REDUCTIONS: list[Row] = [
    *_axes_up("ReduceSum", 12),
    *_axes_down("ReduceSum", 13),
    *_negative("ReduceSum"),
    *(row for op in AT_18 for row in (*_axes_up(op, 17), *_axes_down(op, 18), *_negative(op))),
    rewrites(
        "ReduceSum of integers",
        13,
        11,
        "(int64[2,3] x) => (int64[2] y) <int64[1] i = {1}> { y = ReduceSum<keepdims=0>(x, i) }",
        into=["ReduceSum"],
    ),
    rewrites(
        "ReduceMax of no rows", 18, 13, constant("ReduceMax", "N,3", "N,1", "1"), dims={"N": 0}, into=["ReduceMax"]
    ),
    *(
        rewrites(
            f"{op} of nothing at run time, {name}",
            18,
            17,
            run_time(op, x, y, 1, more),
            feeds={"i": [axis]},
            may_refuse=RANK,
        )
        for op in ("ReduceProd", "ReduceL2")
        for name, x, y, axis, more in (
            ("kept", "2,0,3", "?,?,?", 1, ""),
            ("dropped", "2,0,3", "?,?", 1, DROP),
            ("beside another", "2,3,0", "?,?,?", 1, ""),
            ("beside another, dropped", "0,3,2", "?,?", -1, DROP),
        )
    ),
    rewrites(
        "ReduceSum of a scalar at run time",
        13,
        12,
        "(float x, int64[K] i) => (float y) { y = ReduceSum<keepdims=0>(x, i) }",
        dims={"K": 0},
        may_refuse=RANK,
    ),
    rewrites(
        "ReduceMax at run time", 18, 9, run_time("ReduceMax", CUBE, "?,?,?", 2), feeds={"i": [2, -3]}, may_refuse=RANK
    ),
    *(
        rewrites(
            f"{op} of {dtype}",
            18,
            28,
            f"({dtype}[2,3] x) => ({dtype}[2] y) <int64[1] i = {{1}}> {{ y = {op}<keepdims=0>(x, i) }}",
            feeds={"x": [[1, 2, 4], [3, 0, 6]]},
            into=into,
        )
        for dtype in ("int32", "int64")
        for op, into in (
            ("ReduceLogSum", ["ReduceSum", "Cast", "Log", "Cast"]),
            ("ReduceLogSumExp", ["Cast", "ReduceLogSumExp", "Cast"]),
        )
    ),
    rewrites(
        "ReduceMean over joined constants",
        18,
        13,
        "(float[2,3,4] x) => (float[2] y) <int64[1] i = {1}, int64[1] j = {2}> "
        "{ k = Concat<axis=0>(i, j) y = ReduceMean<keepdims=0>(x, k) }",
    ),
]


def _arg(op: str, attributes: str, y: str) -> str:
    return f"(float[2,3,4] x) => (int64[{y}] y) {{ y = {op}<{attributes}>(x) }}"


TIES = {"x": [[[1, 2, 2, 0], [3, 2, 2, 3], [3, 0, 0, 3]], [[0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]]]}

ARG: list[Row] = [
    rewrites(
        "ArgMax of a vector, the last",
        12,
        9,
        "(float[4] x) => (int64 y) { y = ArgMax<keepdims=0, select_last_index=1>(x) }",
        feeds={"x": [1, 3, 3, 0]},
    ),
    *(
        rewrites(f"{op} at {axis}, the last", 13, below, _arg(op, f"axis={axis}, select_last_index=1", y), feeds=TIES)
        for op in ("ArgMax", "ArgMin")
        for axis, below, y in ((0, 11, "1,3,4"), (1, 10, "2,1,4"), (-1, 11, "2,3,1"), (-2, 10, "2,1,4"))
    ),
    rewrites("ArgMax, the first", 12, 11, _arg("ArgMax", "axis=1, select_last_index=0", "2,1,4"), into=["ArgMax"]),
] + [
    row
    for op in ("ArgMax", "ArgMin")
    for row in (
        rewrites(f"{op} negative", 11, 10, _arg(op, "axis=-2", "2,1,4"), into=[op], may_refuse=RANK),
        keeps(f"{op} positive", 13, 1, _arg(op, "axis=1", "2,1,4")),
        keeps(f"{op} positive", 1, 13, _arg(op, "axis=1,keepdims=0", "2,4")),
    )
]


ROWS = [*REDUCTIONS, *ARG]

test_rows = each_of(ROWS)
