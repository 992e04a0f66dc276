# SPDX-License-Identifier: Apache-2.0
"""Sum, Mean, Max, Min (8: inputs are stretched to a common shape, 12: integers)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites

# ---- variadic

VARIADIC = ("Sum", "Mean", "Max", "Min")
NO_TILE = {"dims": "shape", "ranks": "shape"}


def _three(op: str, a: str, b: str, c: str, y: str) -> str:
    return f"(float{a} a, float{b} b, float{c} c) => (float{y} y) {{ y = {op}(a, b, c) }}"


def _variadic(op: str) -> list[Row]:
    equal = _three(op, "[2,3]", "[2,3]", "[2,3]", "[2,3]")
    single = f"(float[2,3] a) => (float[2,3] y) {{ y = {op}(a) }}"
    hinted = f"(float[2] a, float[2] b) => (float[2] y) {{ y = {op}<consumed_inputs=[0,0]>(a, b) }}"
    return [
        keeps(f"{op} of equal shapes", 6, 8, equal),
        keeps(f"{op} of one", 6, 13, single),
        rewrites(f"{op} of equal shapes", 8, 6, equal, into=[op]),
        rewrites(f"{op} of equal shapes", 13, 1, equal, into=[op], may_refuse=NO_TILE),
        rewrites(f"{op} of one", 8, 6, single),
        rewrites(f"{op} of a row and a scalar", 8, 6, _three(op, "[2,3]", "[3]", "", "[2,3]")),
        rewrites(f"{op} of a row and a scalar", 13, 7, _three(op, "[2,3]", "[3]", "", "[2,3]")),
        rewrites(f"{op} stretched both ways", 8, 6, _three(op, "[2,1,3]", "[4,1]", "[1]", "[2,4,3]")),
        rewrites(f"{op} that grows", 8, 7, _three(op, "[3]", "[2,3]", "[4,1,1]", "[4,2,3]")),
        rewrites(
            f"{op} of unknown sizes",
            8,
            6,
            f"(float[M,N] a, float[M,1] b) => (float[M,N] y) {{ y = {op}(a, b) }}",
        ),
        rewrites(f"{op} with consumed_inputs", 1, 6, hinted, into=[op]),
        rewrites(f"{op} with consumed_inputs", 1, 13, hinted, into=[op]),
    ]


VARIADICS: list[Row] = [row for op in VARIADIC for row in _variadic(op)]


# ---- Max and Min


def _extremum(operator: str, dtype: str, shapes: tuple[str, ...], y: str) -> str:
    names = "abc"[: len(shapes)]
    inputs = ", ".join(f"{dtype}{shape} {name}" for shape, name in zip(shapes, names, strict=True))
    return f"({inputs}) => ({dtype}{y} y) {{ y = {operator}({', '.join(names)}) }}"


LARGE = {"a": [2**62, 2**62 + 1, -(2**62), 5], "b": [2**62 + 1, 2**62, -(2**62) - 1, 5]}
STRETCHED = ("[2,1]", "[3]", "")

EXTREMA: list[Row] = [
    *(
        rewrites(
            f"{operator} of {dtype}", 12, 11, _extremum(operator, dtype, ("[4]", "[4]"), "[4]"), into=[other, "Where"]
        )
        for operator, other in {"Max": "Greater", "Min": "Less"}.items()
        for dtype in ("int32", "uint32", "int8", "uint64", "int16")
    ),
    rewrites("Max of large int64", 13, 9, _extremum("Max", "int64", ("[4]", "[4]"), "[4]"), feeds=LARGE),
    rewrites("Min of large int64", 13, 9, _extremum("Min", "int64", ("[4]", "[4]"), "[4]"), feeds=LARGE),
    rewrites("Max of three int32", 12, 10, _extremum("Max", "int32", STRETCHED, "[2,3]")),
    rewrites("Max of one int64", 12, 11, _extremum("Max", "int64", ("[4]",), "[4]"), into=["Identity"]),
    keeps("Max of float", 12, 8, _extremum("Max", "float", STRETCHED, "[2,3]")),
    keeps("Max of int64", 12, 13, _extremum("Max", "int64", STRETCHED, "[2,3]")),
    *(
        rewrites(
            f"{operator} of two empty and a full one",
            8,
            6,
            _extremum(operator, "float", ("[M,N]", "[K,N]", "[1]"), "[?,?]"),
            dims={"M": 0, "N": 3, "K": 1},
        )
        for operator in ("Max", "Mean")
    ),
]


MAX: list[Row] = [
    rewrites("Max of int64", 12, 11, "(int64[4] a, int64[4] b) => (int64[4] y) { y = Max(a, b) }"),
]


ROWS = [*VARIADICS, *EXTREMA, *MAX]

test_rows = each_of(ROWS)
