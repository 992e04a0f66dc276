# SPDX-License-Identifier: Apache-2.0
"""Slice: its bounds move from attributes to inputs at 10, and get steps; before 11 no axis is negative."""

from __future__ import annotations

from collections.abc import Sequence

from boundaries import Row, each_of, rewrites

END = 2**63 - 1
START = -(2**63)


def _attributes(x: str, y: str, starts: str, ends: str, axes: str = "") -> str:
    more = f", axes=[{axes}]" if axes else ""
    return f"(float[{x}] x) => (float[{y}] y) {{ y = Slice<starts=[{starts}], ends=[{ends}]{more}>(x) }}"


def _vector(name: str, elements: Sequence[int], kind: str) -> str:
    return f"{kind}[{len(elements)}] {name} = {{{','.join(map(str, elements))}}}"


def _constants(x: str, y: str, *bounds: Sequence[int], kind: str = "int64") -> str:
    """Starts, ends, axes, steps."""
    names = ["starts", "ends", "axes", "steps"][: len(bounds)]
    written = ", ".join(_vector(name, value, kind) for name, value in zip(names, bounds, strict=True))
    return f"(float[{x}] x) => (float[{y}] y) <{written}> {{ y = Slice(x, {', '.join(names)}) }}"


UP: list[Row] = [
    rewrites("Slice", 9, 10, _attributes("4,5", "2,5", "1", "3", "0"), into=["Slice"]),
    rewrites("Slice to the end", 1, 13, _attributes("4,5", "3,4", "1,-4", f"{END},5"), into=["Slice"]),
    rewrites("Slice of two axes", 9, 11, _attributes("4,5", "2,3", "0,1", "2,4", "0,1"), into=["Slice"]),
]

DOWN: list[Row] = [
    rewrites("Slice", 10, 9, _constants("4,5", "2,5", [1], [3], [0]), into=["Slice"]),
    rewrites("Slice without axes", 13, 9, _constants("4,5", "2,4", [1, -4], [3, END]), into=["Slice"]),
    rewrites("Slice with steps of 1", 13, 1, _constants("4,5", "2,3", [1, 0], [3, 3], [0, 1], [1, 1])),
    rewrites("Slice in int32", 13, 9, _constants("4,5", "2,5", [1], [3], [0], kind="int32"), into=["Slice"]),
    rewrites("Slice", 13, 10, _constants("4,5", "2,5", [1], [3], [0]), into=["Slice"]),
    rewrites("Slice at the end", 11, 10, _constants("4,5", "4,2", [1], [3], [-1]), into=["Slice"]),
    rewrites("Slice at the end", 13, 9, _constants("4,5", "4,2", [1], [3], [-1]), into=["Slice"]),
    rewrites("Slice at the end in int32", 13, 10, _constants("4,5", "4,2", [1], [3], [-1], kind="int32")),
    rewrites("Slice at both ends", 11, 10, _constants("2,4,5", "2,2,3", [1, 0], [3, 3], [-2, -1])),
    rewrites("Slice at both ends", 11, 9, _constants("2,4,5", "2,2,3", [1, 0], [3, 3], [-2, -1])),
    rewrites("Slice from both sides", 13, 10, _constants("4,5", "1,2", [1, 0], [3, 1], [-1, 0])),
    rewrites("Slice by twos", 13, 9, _constants("4,5", "2,5", [0], [END], [0], [2]), into=["Gather"]),
    rewrites("Slice by minus twos", 13, 9, _constants("4,5", "4,2", [-1], [0], [1], [-2]), into=["Gather"]),
    rewrites("Slice backwards", 13, 9, _constants("N,5", "N,5", [-1], [START], [0], [-1])),
    rewrites("Slice backwards of nothing", 13, 9, _constants("N,5", "N,5", [-1], [START], [0], [-1]), dims={"N": 0}),
    rewrites(
        "Slice of everything", 13, 9, _constants("4,5", "4,5", [0, 0], [END, END], [0, 1], [1, 1]), into=["Slice"]
    ),
]

# x[start:end:step] of six elements
BOUNDS = [(0, 100, 2), (-1, -100, -1), (5, 0, -2), (1, 4, 1), (-3, 100, 1), (4, 2, 1), (2, -7, -1), (-9, END, 3)]


def _at_run_time(x: str, starts: str, more: str = "") -> str:
    return (
        f"(float[{x}] x, int64[{starts}] s, int64[{starts}] e, int64[{starts}] p) => (float[?,?] y) "
        f"<int64[1] a = {{0}}> {{ y = Slice(x, s, e, a, p) }}"
    )


RUN_TIME: list[Row] = (
    [
        rewrites(
            f"Slice to {end}",
            13,
            9,
            "(float[N,3] x, int64[1] e) => (float[?,3] y) <int64[1] s = {0}, int64[1] a = {0}> "
            "{ y = Slice(x, s, e, a) }",
            nodes=17,
            feeds={"e": [end]},
            dims={"N": 5},
        )
        for end in (3, -2, 0, 9, -9)
    ]
    + [
        rewrites(
            f"Slice from {start}",
            13,
            9,
            f"(float[N,3] x, int64[1] s) => (float[?,3] y) <int64[1] e = {{{END}}}, int64[1] a = {{0}}> "
            "{ y = Slice(x, s, e, a) }",
            feeds={"s": [start]},
            dims={"N": 5},
        )
        for start in (3, -2, 0, 9, -9)
    ]
    + [
        rewrites(
            f"Slice {start}:{'' if end == END else end}:{step} at run time",
            13,
            9,
            _at_run_time("6,3", "1"),
            feeds={"s": [start], "e": [end], "p": [step]},
        )
        for start, end, step in BOUNDS
    ]
    + [
        rewrites(
            f"Slice {start}:{'' if end == END else end}:{step} of N",
            10,
            9,
            _constants("N,3", "?,3", [start], [end], [0], [step]),
            dims={"N": 6},
        )
        for start, end, step in BOUNDS
        if step != 1
    ]
    + [
        rewrites(
            "Slice to a length",
            13,
            9,
            "(float[2,5] x, int32[1] e) => (float[2,?] y) <int32[1] s = {1}, int32[1] a = {1}> "
            "{ y = Slice(x, s, e, a) }",
            feeds={"e": [3]},
        ),
        rewrites(
            "Slice of two axes at run time",
            13,
            9,
            "(float[4,5] x, int64[2] s, int64[2] e) => (float[?,?] y) { y = Slice(x, s, e) }",
            feeds={"s": [1, -2], "e": [3, 9]},
            may_refuse={"dims": "neither axes nor", "ranks": "neither axes nor"},
        ),
        rewrites(
            "Slice along axes at run time",
            13,
            10,
            "(float[4,5] x, int64[2] a) => (float[?,?] y) <int64[2] s = {1,0}, int64[2] e = {3,2}> "
            "{ y = Slice(x, s, e, a) }",
            feeds={"a": [-1, 0]},
        ),
        *(
            rewrites(
                f"Slice along axes {axes} at run time by indices",
                13,
                target,
                "(float[4,5,3] x, int64[2] a) => (float[?,?,?] y) <int64[2] s = {1,-9}, int64[2] e = {3,2}> "
                "{ y = Slice(x, s, e, a) }",
                feeds={"a": axes},
                may_refuse={"ranks": "rank"},
            )
            for axes, target in (([1, 0], 9), ([-1, 1], 9), ([0, 2], 8))
        ),
        *(
            rewrites(
                f"Slice of one axis and all bounds at run time, step {step}",
                11,
                9,
                "(float[4,5] x, int64[1] s, int64[1] e, int64[1] a, int64[1] p) => (float[?,?] y) "
                "{ y = Slice(x, s, e, a, p) }",
                feeds={"s": [start], "e": [end], "a": [1], "p": [step]},
                may_refuse={"ranks": "rank"},
            )
            for start, end, step in ((-1, -(2**40), -2), (0, 2**40, 3), (4, 1, 1))
        ),
    ]
)


ROWS = [*UP, *DOWN, *RUN_TIME]

test_rows = each_of(ROWS)
