# SPDX-License-Identifier: Apache-2.0
"""Gather (11: negative axes and indices), Scatter and its heirs: the name (11), reductions (16, 18); GatherND with
batches (12)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites


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


REDUCTIONS = {"add": 16, "mul": 16, "max": 18, "min": 18}


def elements(x: str, i: str, attributes: str, constant: str = "", dtype: str = "double") -> str:
    """`constant` are the indices, if they are not computed. In double, as onnxruntime does not reduce float16."""
    made = f"<int64[{i}] i = {{{constant}}}>" if constant else ""
    more = "" if constant else f", int64[{i}] i"
    graph = f"({dtype}[{x}] x{more}, {dtype}[{i}] u) => ({dtype}[{x}] y)"
    return f"{graph} {made} {{ y = ScatterElements<{attributes}>(x, i, u) }}"


def rows(x: str, i: str, u: str, attributes: str, constant: str = "", dtype: str = "double") -> str:
    """The same by rows."""
    made = f"<int64[{i}] i = {{{constant}}}>" if constant else ""
    more = "" if constant else f", int64[{i}] i"
    graph = f"({dtype}[{x}] x{more}, {dtype}[{u}] u) => ({dtype}[{x}] y)"
    written = f"<{attributes}>" if attributes else ""
    return f"{graph} {made} {{ y = ScatterND{written}(x, i, u) }}"


RANK = {"ranks": "rank"}

ELEMENTS: list[Row] = [
    rewrites(
        "Scatter",
        9,
        11,
        "(float[3,3] x, int64[2,3] i, float[2,3] u) => (float[3,3] y) { y = Scatter(x, i, u) }",
        feeds={"i": [[1, 0, 2], [0, 2, 1]]},
        into=["ScatterElements"],
    ),
    rewrites(
        "Scatter along 1",
        9,
        25,
        "(float[1,5] x, int64[1,2] i, float[1,2] u) => (float[1,5] y) { y = Scatter<axis=1>(x, i, u) }",
        feeds={"i": [[1, 3]]},
        into=["ScatterElements"],
    ),
    keeps("ScatterElements", 16, 15, elements("1,5", "1,2", "axis=1"), feeds={"i": [[1, 3]]}),
    keeps("ScatterElements add", 18, 16, elements("5", "2", 'reduction="add"'), feeds={"i": [3, 3]}),
    rewrites(
        "ScatterElements none",
        18,
        13,
        elements("5", "2", 'reduction="none"'),
        feeds={"i": [3, 1]},
        into=["ScatterElements"],
    ),
    *(
        row
        for name, first in REDUCTIONS.items()
        for row in (
            rewrites(
                f"ScatterElements {name}",
                first,
                15,
                elements("4,3", "3,2", f'reduction="{name}"'),
                feeds={"i": [[0, 1], [0, -3], [3, 1]]},
                options={"exact": True},
            ),
            rewrites(
                f"ScatterElements {name} along the end",
                first,
                11,
                elements("2,5", "2,3", f'axis=-1,reduction="{name}"'),
                feeds={"i": [[4, 4, 4], [0, 1, 0]]},
                options={"exact": True},
            ),
            rewrites(
                f"ScatterElements {name} of one",
                first,
                13,
                elements("2,5", "2,1", f'axis=1,reduction="{name}"'),
                feeds={"i": [[4], [0]]},
                into=["GatherElements", name.title(), "ScatterElements"],
            ),
            rewrites(
                f"ScatterElements {name} of constant places",
                first,
                13,
                elements("5", "2", f'reduction="{name}"', "0,3"),
                into=["GatherElements", name.title(), "ScatterElements"],
            ),
            rewrites(
                f"ScatterElements {name} of constant places, twice",
                first,
                13,
                elements("5", "3", f'reduction="{name}"', "0,3,3"),
            ),
        )
    ),
    rewrites("ScatterElements add of int64", 16, 13, elements("5", "3", 'reduction="add"', "1,1,1", "int64")),
    *(
        rewrites(
            f"ScatterElements {name} of bool", source, 13, elements("5", "3", f'reduction="{name}"', "1,1,1", "bool")
        )
        for source, name in ((16, "add"), (18, "mul"))  # of max and min onnxruntime runs none
    ),
    *(
        refuses(
            f"ScatterElements {reduction} of {kind}",
            opset,
            15,
            elements("5", "3", f'reduction="{reduction}"', "1,1,1", kind),
            because="complex",
        )
        for kind, reduction, opset in (("complex64", "add", 16), ("complex128", "mul", 16), ("complex64", "add", 18))
    ),
    refuses(
        "ScatterElements add of strings",
        16,
        13,
        elements("5", "3", 'reduction="add"', "1,1,1", "string"),
        because="strings have no add",
    ),
    rewrites("ScatterElements add of nothing", 16, 13, elements("5", "0", 'reduction="add"')),
    rewrites(
        "ScatterElements add of many",
        16,
        11,
        elements("3,5", "2,40", 'axis=1,reduction="add"'),
        feeds={"i": [[1] * 40, [4, 2, -1, 0] * 10]},
        options={"exact": True},
        into=["Shape", "Gather", "Loop"],
    ),
    rewrites(
        "ScatterElements mul of many, negative axis",
        18,
        15,
        elements("3,5", "2,9", 'axis=-1,reduction="mul"'),
        feeds={"i": [[1] * 9, [4, 2, -1] * 3]},
        options={"exact": True},
    ),
]

ROWWISE: list[Row] = [
    keeps("ScatterND", 16, 15, rows("4,3", "2,1", "2,3", ""), feeds={"i": [[1], [3]]}),
    keeps("ScatterND mul", 18, 17, rows("4,3", "2,1", "2,3", 'reduction="mul"'), feeds={"i": [[1], [1]]}),
    *(
        row
        for name, first in REDUCTIONS.items()
        for row in (
            rewrites(
                f"ScatterND {name}",
                first,
                15,
                rows("4,3", "3,1", "3,3", f'reduction="{name}"'),
                feeds={"i": [[1], [-3], [1]]},
                may_refuse=RANK,
                options={"exact": True},
            ),
            rewrites(
                f"ScatterND {name} of elements in a square",
                first,
                11,
                rows("4,3", "2,2,2", "2,2", f'reduction="{name}"'),
                feeds={"i": [[[0, 1], [0, 1]], [[3, 2], [0, 1]]]},
                may_refuse=RANK,
            ),
            rewrites(
                f"ScatterND {name} of one row",
                first,
                13,
                rows("4,3", "1", "3", f'reduction="{name}"'),
                feeds={"i": [2]},
                may_refuse=RANK,
                into=["GatherND", name.title(), "ScatterND"],
            ),
            rewrites(
                f"ScatterND {name} of constant rows",
                first,
                13,
                rows("9,3", "9,1", "9,3", f'reduction="{name}"', "3,0,1,2,8,7,6,5,4"),
                into=["GatherND", name.title(), "ScatterND"],
            ),
        )
    ),
]


def _gathered(x: str, i: str, y: str, batch: int, constant: str = "") -> str:
    made = f"<int64[{i}] i = {{{constant}}}>" if constant else ""
    more = "" if constant else f", int64[{i}] i"
    return f"(float[{x}] x{more}) => (float[{y}] y) {made} {{ y = GatherND<batch_dims={batch}>(x, i) }}"


GATHER_ND: list[Row] = [
    rewrites("GatherND batch 0", 12, 11, _gathered("2,3", "2,1", "2,3", 0), feeds={"i": [[1], [0]]}, into=["GatherND"]),
    rewrites(
        "GatherND batch 1",
        12,
        11,
        _gathered("2,3,4", "2,1", "2,4", 1),
        feeds={"i": [[1], [-1]]},
        into=["Concat", "GatherND"],
    ),
    rewrites(
        "GatherND batch 1, constant",
        13,
        11,
        _gathered("9,3,4", "9,1", "9,4", 1, "1,2,0,0,1,2,-1,0,0"),
        into=["Concat", "GatherND"],
    ),
    rewrites(
        "GatherND batch 1 of many",
        13,
        11,
        _gathered("2,3,4", "2,5,2", "2,5", 1),
        feeds={"i": [[[0, 0], [2, 3], [1, 1], [0, 2], [-1, -2]], [[2, 0], [0, 3], [2, 1], [1, 2], [2, 2]]]},
        into=["Concat", "GatherND"],
    ),
    rewrites(
        "GatherND batch 2",
        25,
        11,
        _gathered("2,3,4", "2,3,1", "2,3", 2),
        feeds={"i": [[[0], [1], [3]], [[-1], [2], [0]]]},
        into=["Concat", "GatherND"],
    ),
    rewrites(
        "GatherND batch of unknown size",
        12,
        11,
        _gathered("N,3,4", "N,2,1", "?,2,4", 1),
        dims={"N": 2},
        feeds={"i": [[[0], [2]], [[1], [1]]]},
    ),
    rewrites("GatherND batch of nothing", 13, 11, _gathered("N,3,4", "N,2,1", "?,2,4", 1), dims={"N": 0}),
    keeps(
        "GatherND",
        11,
        12,
        "(float[2,3] x, int64[2,1] i) => (float[2,3] y) { y = GatherND(x, i) }",
        feeds={"i": [[1], [0]]},
    ),
]


ROWS = [*GATHER, *ELEMENTS, *ROWWISE, *GATHER_ND]

test_rows = each_of(ROWS)
