# SPDX-License-Identifier: Apache-2.0
"""Squeeze, Unsqueeze and the reductions: `axes` moves from attribute to input (Squeeze, Unsqueeze, ReduceSum at 13, the
other reductions at 18), and before 11 no axis is negative."""

from __future__ import annotations

from boundaries.rows import Row, keeps, refuses, rewrites

# A reduction over run-time axes goes one axis at a time, so the rank has to be known.
RANK = {"ranks": "rank"}

SQUEEZE: list[Row] = [
    rewrites("Squeeze one", 11, 13, "(float[2,1,3,1] x) => (float[2,3,1] y) { y = Squeeze<axes=[1]>(x) }", into=["Squeeze"]),
    rewrites("Squeeze two", 11, 13, "(float[2,1,3,1] x) => (float[2,3] y) { y = Squeeze<axes=[1,3]>(x) }", into=["Squeeze"]),
    rewrites("Squeeze negative", 11, 13, "(float[2,1,3,1] x) => (float[2,3] y) { y = Squeeze<axes=[-1,1]>(x) }", into=["Squeeze"]),
    rewrites("Squeeze", 1, 25, "(float[1,3] x) => (float[3] y) { y = Squeeze<axes=[0]>(x) }", into=["Squeeze"]),
    keeps("Squeeze all", 11, 13, "(float[2,1,3,1] x) => (float[2,3] y) { y = Squeeze(x) }"),
    keeps("Squeeze all", 13, 11, "(float[2,1,3,1] x) => (float[2,3] y) { y = Squeeze(x) }"),
    rewrites("Squeeze one", 13, 11, "(float[2,1,3,1] x) => (float[2,3,1] y) <int64[1] i = {1}> { y = Squeeze(x, i) }", into=["Squeeze"]),
    rewrites("Squeeze two", 13, 11, "(float[2,1,3,1] x) => (float[2,3] y) <int64[2] i = {1,-1}> { y = Squeeze(x, i) }", into=["Squeeze"]),
    rewrites("Squeeze twice by one constant", 13, 12, "(float[1,2,1] x, float[1,2,2] z) => (float[2,1] y, float[2,2] w) <int64[1] i = {0}> { y = Squeeze(x, i) w = Squeeze(z, i) }", into=["Squeeze", "Squeeze"]),
    rewrites("Squeeze by a constant with another use", 13, 11, "(float[1,2] x) => (float[2] y, int64[1] j) <int64[1] i = {0}> { y = Squeeze(x, i) j = Neg(i) }", into=["Squeeze", "Neg"]),
    rewrites("Squeeze negative", 13, 10, "(float[2,1,3,1] x) => (float[2,3] y) <int64[2] i = {1,-1}> { y = Squeeze(x, i) }"),
    rewrites("Squeeze negative", 11, 10, "(float[2,1,3,1] x) => (float[2,3] y) { y = Squeeze<axes=[-1,1]>(x) }"),
    rewrites("Squeeze at run time", 13, 11, "(float[2,1,4,1] x, int64[2] i) => (float[?,?] y) { y = Squeeze(x, i) }", feeds={"i": [-1, 1]}),
    rewrites("Squeeze at run time", 13, 9, "(float[2,1,4,1] x, int64[1] i) => (float[?,?,?] y) { y = Squeeze(x, i) }", feeds={"i": [-1]}),
    rewrites("Squeeze one of int8", 25, 1, "(int8[2,1] x) => (int8[2] y) <int64[1] i = {1}> { y = Squeeze(x, i) }"),
    rewrites("Squeeze of an unknown batch", 13, 11, "(float[N,1,3] x) => (float[N,3] y) <int64[1] i = {1}> { y = Squeeze(x, i) }", into=["Squeeze"]),
    refuses("Squeeze of bfloat16", 13, 11, "(bfloat16[2,1] x) => (bfloat16[2] y) <int64[1] i = {1}> { y = Squeeze(x, i) }", because="bfloat16"),
]  # fmt: skip

UNSQUEEZE: list[Row] = [
    rewrites("Unsqueeze one", 11, 13, "(float[2,3] x) => (float[2,1,3] y) { y = Unsqueeze<axes=[1]>(x) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze two", 11, 13, "(float[2,3] x) => (float[1,2,3,1] y) { y = Unsqueeze<axes=[0,3]>(x) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze negative", 11, 13, "(float[2,3] x) => (float[2,3,1] y) { y = Unsqueeze<axes=[-1]>(x) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze a scalar", 1, 25, "(float x) => (float[1,1] y) { y = Unsqueeze<axes=[0,1]>(x) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze one", 13, 11, "(float[2,3] x) => (float[2,1,3] y) <int64[1] i = {1}> { y = Unsqueeze(x, i) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze two out of order", 13, 11, "(float[2,3] x) => (float[1,2,3,1] y) <int64[2] i = {3,0}> { y = Unsqueeze(x, i) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze negative", 13, 11, "(float[2,3] x) => (float[2,1,3] y) <int64[1] i = {-2}> { y = Unsqueeze(x, i) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze negative", 13, 10, "(float[2,3] x) => (float[2,1,3,1] y) <int64[2] i = {-1,1}> { y = Unsqueeze(x, i) }"),
    rewrites("Unsqueeze negative", 11, 10, "(float[2,3] x) => (float[2,3,1] y) { y = Unsqueeze<axes=[-1]>(x) }"),
    rewrites("Unsqueeze at run time", 13, 11, "(float[2,4] x, int64[2] i) => (float[?,?,?,?] y) { y = Unsqueeze(x, i) }", feeds={"i": [-1, 1]}),
    rewrites("Unsqueeze at run time", 13, 9, "(float[2,4] x, int64[1] i) => (float[?,?,?] y) { y = Unsqueeze(x, i) }", feeds={"i": [-1]}),
    rewrites("Unsqueeze of an unknown batch", 13, 11, "(float[N,3] x) => (float[N,1,3] y) <int64[1] i = {1}> { y = Unsqueeze(x, i) }", into=["Unsqueeze"]),
    rewrites("Unsqueeze of strings", 13, 11, "(string[2] x) => (string[2,1] y) <int64[1] i = {1}> { y = Unsqueeze(x, i) }", into=["Unsqueeze"]),
]  # fmt: skip

# ---- reductions

CUBE = "(float[2,3,4] x) => "


def _axes_up(op: str, last: int) -> list[Row]:
    """`last` is the last opset at which `axes` is an attribute."""
    below, above = last, last + 1
    return [
        rewrites(f"{op} one", below, above, f"{CUBE} (float[2,1,4] y) {{ y = {op}<axes=[1]>(x) }}", into=[op]),
        rewrites(f"{op} two, dropped", below, above, f"{CUBE} (float[3] y) {{ y = {op}<axes=[0,-1],keepdims=0>(x) }}", into=[op]),
        keeps(f"{op} all", below, above, f"{CUBE} (float[1,1,1] y) {{ y = {op}(x) }}"),
        keeps(f"{op} all, dropped", below, above, f"{CUBE} (float y) {{ y = {op}<keepdims=0>(x) }}"),
        rewrites(f"{op} from the beginning", 1, above, f"{CUBE} (float[2,3] y) {{ y = {op}<axes=[2],keepdims=0>(x) }}", into=[op]),
    ]  # fmt: skip


def _axes_down(op: str, first: int) -> list[Row]:
    """`first` is the first opset at which `axes` is an input."""
    above, below = first, first - 1
    noop = "noop_with_empty_axes=1"
    return [
        rewrites(f"{op} one", above, below, f"{CUBE} (float[2,1,4] y) <int64[1] i = {{1}}> {{ y = {op}(x, i) }}", into=[op]),
        rewrites(f"{op} two, dropped", above, below, f"{CUBE} (float[3] y) <int64[2] i = {{0,-1}}> {{ y = {op}<keepdims=0>(x, i) }}", into=[op]),
        rewrites(f"{op} one, noop", above, below, f"{CUBE} (float[2,1,4] y) <int64[1] i = {{1}}> {{ y = {op}<{noop}>(x, i) }}", into=[op]),
        keeps(f"{op} all", above, below, f"{CUBE} (float[1,1,1] y) {{ y = {op}(x) }}"),
        rewrites(f"{op} all by an empty list", above, below, f"{CUBE} (float y) <int64[0] i = {{}}> {{ y = {op}<keepdims=0>(x, i) }}", into=[op]),
        rewrites(f"{op} all, noop=0", above, below, f"{CUBE} (float[1,1,1] y) {{ y = {op}<noop_with_empty_axes=0>(x) }}", into=[op]),
        rewrites(f"{op} nothing", above, below, f"{CUBE} (float[2,3,4] y) {{ y = {op}<{noop}>(x) }}"),
        rewrites(f"{op} nothing by an empty list", above, below, f"{CUBE} (float[2,3,4] y) <int64[0] i = {{}}> {{ y = {op}<{noop}>(x, i) }}"),
        rewrites(f"{op} negative", above, 10, f"{CUBE} (float[2,3,1] y) <int64[1] i = {{-1}}> {{ y = {op}(x, i) }}"),
        rewrites(f"{op} at run time", above, below, f"(float[2,3,4] x, int64[2] i) => (float[?,?,?] y) {{ y = {op}(x, i) }}", feeds={"i": [0, -1]}, may_refuse=RANK),
        rewrites(f"{op} at run time, dropped", above, below, f"(float[2,3,4] x, int64[1] i) => (float[?,?] y) {{ y = {op}<keepdims=0>(x, i) }}", feeds={"i": [-2]}, may_refuse=RANK),
        rewrites(f"{op} at run time, of none", above, below, f"(float[2,3,4] x, int64[K] i) => (float[?,?,?] y) {{ y = {op}(x, i) }}", dims={"K": 0}, may_refuse=RANK),
        rewrites(f"{op} at run time, of none, noop", above, below, f"(float[2,3,4] x, int64[K] i) => (float[?,?,?] y) {{ y = {op}<{noop}>(x, i) }}", dims={"K": 0}, may_refuse=RANK),
    ]  # fmt: skip


def _negative(op: str) -> list[Row]:
    return [
        rewrites(f"{op} negative", 11, 10, f"{CUBE} (float[2,3,1] y) {{ y = {op}<axes=[-1]>(x) }}", into=[op]),
        rewrites(f"{op} two negative, dropped", 12, 1, f"{CUBE} (float[3] y) {{ y = {op}<axes=[-1,0],keepdims=0>(x) }}", into=[op]),
        keeps(f"{op} positive", 11, 10, f"{CUBE} (float[2,3,1] y) {{ y = {op}<axes=[2]>(x) }}"),
        keeps(f"{op} all", 11, 1, f"{CUBE} (float[1,1,1] y) {{ y = {op}(x) }}"),
    ]  # fmt: skip


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
ARG = ("ArgMax", "ArgMin")

REDUCTIONS: list[Row] = [
    *_axes_up("ReduceSum", 12),
    *_axes_down("ReduceSum", 13),
    *_negative("ReduceSum"),
    *(row for op in AT_18 for row in (*_axes_up(op, 17), *_axes_down(op, 18), *_negative(op))),
    rewrites("ReduceSum of integers", 13, 11, "(int64[2,3] x) => (int64[2] y) <int64[1] i = {1}> { y = ReduceSum<keepdims=0>(x, i) }", into=["ReduceSum"]),
    rewrites("ReduceMax of no columns kept", 18, 13, "(float[N,3] x) => (float[N,1] y) <int64[1] i = {1}> { y = ReduceMax(x, i) }", dims={"N": 0}, into=["ReduceMax"]),
    rewrites("ReduceMean over computed and constant axes", 18, 13, "(float[2,3,4] x) => (float[2] y) <int64[1] i = {1}, int64[1] j = {2}> { k = Concat<axis=0>(i, j) y = ReduceMean<keepdims=0>(x, k) }"),
    *(rewrites(f"{op} negative", 11, 10, f"{CUBE} (int64[2,1,4] y) {{ y = {op}<axis=-2>(x) }}", into=[op]) for op in ARG),
    *(keeps(f"{op} positive", 13, 1, f"{CUBE} (int64[2,1,4] y) {{ y = {op}<axis=1>(x) }}") for op in ARG),
    *(keeps(f"{op} positive", 1, 13, f"{CUBE} (int64[2,4] y) {{ y = {op}<axis=1,keepdims=0>(x) }}") for op in ARG),
]  # fmt: skip

ROWS = [*SQUEEZE, *UNSQUEEZE, *REDUCTIONS]
