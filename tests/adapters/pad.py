# SPDX-License-Identifier: Apache-2.0
"""Pad: `paddings` (1), `pads` as attribute (2) and as input (11), other dtypes (11, 13), `axes` (18), wrap (19)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites

BLOCKS = ["Expand", "Expand", "Concat"]


def attribute(x: str, y: str, attributes: str, dtype: str = "float") -> str:
    """Below 11: everything is an attribute."""
    return f"({dtype}[{x}] x) => ({dtype}[{y}] y) {{ y = Pad<{attributes}>(x) }}"


def constant(x: str, y: str, pads: str, mode: str = "", more: str = "", dtype: str = "float") -> str:
    """From 11: constant pads; `more` is a value or the axes as inputs, with what makes them."""
    count = pads.count(",") + 1
    inputs, _, made = more.partition("|")
    written = f'<mode="{mode}">' if mode else ""
    made = f", {made}" if made else ""
    made = f"<int64[{count}] p = {{{pads}}}{made}>"
    return f"({dtype}[{x}] x) => ({dtype}[{y}] y) {made} {{ y = Pad{written}(x, p{inputs}) }}"


RANK = {"ranks": "rank"}


def run_time(x: str, y: str, mode: str = "", more: str = "", dtype: str = "float", count: int | str = 4) -> str:
    """From 11: computed pads; `more` is a value or the axes as inputs of Pad, and of the graph."""
    inputs, _, made = more.partition("|")
    written = f'<mode="{mode}">' if mode else ""
    made = f", {made}" if made else ""
    return f"({dtype}[{x}] x, int64[{count}] p{made}) => ({dtype}[{y}] y) {{ y = Pad{written}(x, p{inputs}) }}"


AT_2: list[Row] = [
    rewrites("Pad by paddings", 1, 5, attribute("2,3", "4,5", "paddings=[1,1,1,1],value=2.0"), into=["Pad"]),
    rewrites("Pad by paddings, edge", 1, 10, attribute("2,3", "4,5", 'paddings=[1,0,1,2],mode="edge"'), into=["Pad"]),
    rewrites("Pad by pads", 5, 1, attribute("2,3", "4,5", "pads=[1,1,1,1],value=2.0"), into=["Pad"]),
    rewrites("Pad by pads, reflect", 10, 1, attribute("4,3", "4,6", 'pads=[0,2,0,1],mode="reflect"'), into=["Pad"]),
    rewrites("Pad by negative pads", 10, 1, attribute("4,3", "3,4", "pads=[-2,0,1,1]"), into=["Slice", "Pad"]),
    rewrites("Pad by nothing but negative pads", 10, 1, attribute("4,3", "2,2", "pads=[-1,0,-1,-1]")),
    keeps("Pad by pads", 5, 10, attribute("2,3", "4,5", "pads=[1,1,1,1]")),
    keeps("Pad by pads", 10, 5, attribute("2,3", "4,5", "pads=[1,1,1,1]")),
]

AT_11_UP: list[Row] = [
    rewrites("Pad by 0", 10, 11, attribute("2,3", "4,5", "pads=[1,1,1,1]"), into=["Pad"]),
    rewrites("Pad by a value", 10, 11, attribute("2,3", "4,5", "pads=[1,1,1,1],value=2.5"), into=["Pad"]),
    rewrites("Pad by a value", 5, 25, attribute("2,3", "4,5", "pads=[1,1,1,1],value=2.5"), into=["Pad"]),
    rewrites("Pad by -0", 10, 11, attribute("2", "4", "pads=[1,1],value=-0.0"), into=["Pad"], options={"exact": True}),
    rewrites("Pad by the largest float", 10, 11, attribute("2", "4", "pads=[1,1],value=-3.4028235e38")),
    rewrites("Pad by negative pads", 10, 11, attribute("4,3", "3,4", "pads=[-2,0,1,1]"), into=["Pad"]),
    rewrites("Pad reflect", 10, 13, attribute("4,3", "4,6", 'pads=[0,2,0,1],mode="reflect",value=1.0'), into=["Pad"]),
    rewrites("Pad edge, from the beginning", 1, 13, attribute("4,3", "4,6", 'paddings=[0,2,0,1],mode="edge"')),
]

VALUE = ", v|float v = {2.5}"
INTEGER = ", v|int64 v = {7}"

AT_11_DOWN: list[Row] = [
    rewrites("Pad by 0", 11, 10, constant("2,3", "4,5", "1,1,1,1"), into=["Pad"]),
    rewrites("Pad by 0", 25, 6, constant("2,3", "4,5", "1,1,1,1"), into=["Pad"]),
    rewrites("Pad by a value", 11, 10, constant("2,3", "4,5", "1,1,1,1", more=VALUE), into=["Pad"]),
    rewrites("Pad reflect", 13, 10, constant("4,3", "4,6", "0,2,0,1", "reflect"), into=["Pad"]),
    rewrites("Pad by negative pads", 13, 10, constant("4,3", "3,4", "-2,0,1,1"), into=["Pad"]),
    rewrites("Pad by 0 of an unknown batch", 13, 10, constant("N,3", "N,5", "0,1,0,1"), into=["Pad"]),
    rewrites(
        "Pad by a value that float32 does not hold",
        11,
        10,
        constant("2,3", "4,3", "1,0,1,0", more=", v|double v = {0.1}", dtype="double"),
        into=BLOCKS,
        options={"exact": True},
    ),
    rewrites(
        "Pad by a value beyond float32",
        11,
        9,
        constant("2,3", "2,4", "0,0,0,1", more=", v|double v = {1e300}", dtype="double"),
        into=["Expand", "Concat"],
    ),
    rewrites(
        "Pad by a computed value",
        11,
        10,
        "(float[2,3] x, float v) => (float[4,4] y) <int64[4] p = {1,0,1,1}> { y = Pad(x, p, v) }",
        into=[*BLOCKS, "Expand", "Concat"],
    ),
    rewrites("Pad of integers", 11, 10, constant("2,3", "4,3", "1,0,1,0", more=INTEGER, dtype="int64"), into=BLOCKS),
    rewrites("Pad of integers by 0, negative pads", 13, 9, constant("4,3", "3,4", "-2,0,1,1", dtype="int32")),
    rewrites("Pad of integers, edge", 13, 10, constant("4,3", "5,5", "1,1,0,1", "edge", dtype="int64")),
    rewrites("Pad of integers, reflect", 13, 10, constant("4,3", "6,7", "2,2,0,2", "reflect", dtype="int64")),
    rewrites("Pad of integers, reflect one", 13, 10, constant("1,3", "1,5", "0,1,0,1", "reflect", dtype="int64")),
    rewrites(
        "Pad of integers of unknown sizes",
        13,
        10,
        constant("M,N", "?,?", "1,1,1,1", dtype="int64"),
        dims={"M": 0, "N": 3},
    ),
    rewrites("Pad at run time", 11, 10, run_time("2,3", "?,?"), feeds={"p": [1, 0, 2, 3]}, may_refuse=RANK),
    rewrites("Pad at run time", 13, 9, run_time("2,3", "?,?"), feeds={"p": [1, 0, 2, 3]}, may_refuse=RANK),
    rewrites("Pad at run time, negative", 13, 10, run_time("4,3", "?,?"), feeds={"p": [-2, 0, 1, -1]}, may_refuse=RANK),
    rewrites(
        "Pad at run time, to nothing", 13, 10, run_time("4,3", "?,?"), feeds={"p": [-2, 0, -2, 1]}, may_refuse=RANK
    ),
    rewrites(
        "Pad at run time, edge", 13, 10, run_time("4,3", "?,?", "edge"), feeds={"p": [2, 0, 1, 3]}, may_refuse=RANK
    ),
    rewrites(
        "Pad at run time, edge, negative",
        13,
        10,
        run_time("4,3", "?,?", "edge"),
        feeds={"p": [-2, 4, 1, -1]},
        may_refuse=RANK,
    ),
    rewrites(
        "Pad at run time, reflect",
        13,
        10,
        run_time("4,3", "?,?", "reflect"),
        feeds={"p": [2, 0, 3, 2]},
        may_refuse=RANK,
    ),
    rewrites(
        "Pad at run time, reflect, negative",
        13,
        10,
        run_time("5,3", "?,?", "reflect"),
        feeds={"p": [-1, 0, 2, 2]},
        may_refuse=RANK,
    ),
    rewrites(
        "Pad at run time by a computed value",
        13,
        10,
        run_time("2,3", "?,?", "constant", ", v|int64 v", "int64"),
        feeds={"p": [1, 0, 2, 3]},
        may_refuse=RANK,
    ),
    rewrites(
        "Pad at run time of as many dimensions",
        13,
        10,
        run_time("2,3", "?,?", count="?"),
        feeds={"p": [1, 0, 2, 3]},
        may_refuse=RANK,
    ),
]

TEXTS = ', v|string v = {"-"}'

AT_13: list[Row] = [
    rewrites("Pad of bool", 13, 12, constant("2,3", "4,3", "1,0,1,0", dtype="bool"), into=BLOCKS),
    rewrites("Pad of bool", 13, 10, constant("2,3", "4,3", "1,0,1,0", "edge", dtype="bool"), into=["Gather"]),
    rewrites("Pad of strings", 13, 11, constant("2,3", "4,3", "1,0,1,0", more=TEXTS, dtype="string"), into=BLOCKS),
    keeps("Pad", 13, 12, constant("2,3", "4,5", "1,1,1,1")),
    keeps("Pad of int64", 12, 13, constant("2,3", "4,5", "1,1,1,1", dtype="int64")),
    refuses("Pad of bfloat16", 13, 12, constant("2,3", "4,5", "1,1,1,1", dtype="bfloat16"), because="bfloat16"),
]


def _axes(axes: str, value: str = "") -> str:
    count = axes.count(",") + 1
    return f", {'v' if value else ''}, a|int64[{count}] a = {{{axes}}}{', ' if value else ''}{value}"


def _computed_axes(count: int, dtype: str = "int64") -> str:
    return f", , a|{dtype}[{count}] a"


AT_18: list[Row] = [
    rewrites("Pad one axis", 18, 17, constant("2,3", "2,5", "1,1", more=_axes("1")), into=["Pad"]),
    rewrites("Pad one axis", 18, 13, constant("2,3", "2,5", "1,1", more=_axes("1")), into=["Pad"]),
    rewrites("Pad one axis by a value", 18, 17, constant("2,3", "2,5", "1,1", more=_axes("-1", "float v = {3}"))),
    rewrites("Pad axes out of order", 18, 17, constant("2,3,4", "4,3,7", "1,1,2,1", more=_axes("-1,0")), into=["Pad"]),
    rewrites("Pad the last axes, edge", 18, 13, constant("2,3,4", "2,5,6", "1,1,1,1", "edge", _axes("-2,-1"))),
    rewrites("Pad all axes", 18, 17, constant("2,3", "4,5", "1,1,1,1"), into=["Pad"]),
    rewrites(
        "Pad all axes by name",
        18,
        17,
        run_time("2,3", "?,?", more=", , a|int64[2] a"),
        feeds={"p": [1, 0, 2, 1], "a": [0, 1]},
    ),
    rewrites(
        "Pad one axis at run time",
        18,
        17,
        "(float[2,3] x, int64[2] p) => (float[?,?] y) <int64[1] a = {-1}> { y = Pad(x, p, , a) }",
        feeds={"p": [1, 2]},
    ),
    rewrites(
        "Pad all named axes at run time",
        18,
        17,
        "(float[2,3] x, int64[4] p) => (float[?,?] y) <int64[2] a = {0,1}> { y = Pad(x, p, , a) }",
        feeds={"p": [1, 2, 0, 1]},
        into=["Pad"],
    ),
    rewrites(
        "Pad an axis that is computed",
        18,
        17,
        run_time("2,3", "?,?", more=_computed_axes(1), count=2),
        feeds={"p": [1, 2], "a": [-1]},
    ),
    rewrites(
        "Pad axes that are computed",
        18,
        11,
        run_time("2,3,4", "?,?,?", more=_computed_axes(2, "int32")),
        feeds={"p": [1, 2, 0, 1], "a": [-1, 0]},
    ),
    keeps("Pad", 17, 18, constant("2,3", "4,5", "1,1,1,1")),
]

AT_19: list[Row] = [
    rewrites("Pad wrap", 19, 18, constant("4,3", "5,6", "0,2,1,1", "wrap"), into=["Gather", "Gather"]),
    rewrites("Pad wrap", 25, 10, constant("4,3", "5,6", "0,2,1,1", "wrap"), into=["Gather", "Gather"]),
    rewrites("Pad wrap more than once", 19, 18, constant("3", "12", "4,5", "wrap"), into=["Gather"]),
    rewrites("Pad wrap, negative", 19, 18, constant("5", "6", "-1,2", "wrap"), into=["Slice", "Gather"]),
    rewrites("Pad wrap an axis", 19, 18, constant("4,3", "4,6", "2,1", "wrap", _axes("-1")), into=["Gather"]),
    rewrites("Pad wrap an axis of unknown size", 19, 17, constant("4,N", "4,?", "2,1", "wrap", _axes("1"))),
    rewrites(
        "Pad wrap at run time", 19, 18, run_time("4,3", "?,?", "wrap"), feeds={"p": [2, 0, 1, 4]}, may_refuse=RANK
    ),
    rewrites(
        "Pad wrap an axis that is computed",
        19,
        18,
        run_time("4,3", "?,?", "wrap", _computed_axes(1), count=2),
        feeds={"p": [2, 1], "a": [-1]},
        may_refuse={"ranks": "rank"},
    ),
    keeps("Pad edge", 19, 18, constant("4,3", "5,6", "0,2,1,1", "edge")),
    keeps("Pad edge", 18, 19, constant("4,3", "5,6", "0,2,1,1", "edge")),
]


ROWS = [*AT_2, *AT_11_UP, *AT_11_DOWN, *AT_13, *AT_18, *AT_19]

test_rows = each_of(ROWS)
