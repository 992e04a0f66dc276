# SPDX-License-Identifier: Apache-2.0
"""Where the dtype decides what becomes of a binary or variadic operator: Equal (11: floats, 19: strings), Pow (12, 15:
an exponent of another dtype), Max and Min (12: integers); and Tile, which repeats one axis at a time below 6."""

from __future__ import annotations

from math import inf, nan

from boundaries.rows import Row, keeps, refuses, rewrites

# Below 9 a Constant makes only floats, and a function has no initializers.
NO_INTEGERS = {"function": "floats"}

# ---- Equal

FLOATS = {
    "a": [nan, inf, -inf, 0.0, -0.0, 1.0, 0.5, 3.0, nan, inf],
    "b": [nan, inf, inf, -0.0, 0.0, 1.0, 0.25, nan, 3.0, -inf],
}
TEXTS = {"a": [["x", "y", "zz"], ["", "ü", "x"]], "b": [["x"], [""]]}
ORDER = ["Add", "Less", "Greater", "Or", "Less", "Greater", "Or", "Not", "And"]


def _equal(a: str, b: str, y: str) -> str:
    return f"({a} a, {b} b) => (bool{y} y) {{ y = Equal(a, b) }}"


EQUAL: list[Row] = [
    rewrites("Equal of floats", 11, 10, _equal("float[10]", "float[10]", "[10]"), into=ORDER, feeds=FLOATS),
    rewrites("Equal of floats", 13, 7, _equal("float[10]", "float[10]", "[10]"), into=ORDER, feeds=FLOATS),
    rewrites("Equal of floats", 19, 6, _equal("float[10]", "float[10]", "[10]"), into=ORDER, feeds=FLOATS),
    rewrites(
        "Equal of floats", 11, 1, _equal("float[10]", "float[10]", "[10]"), feeds=FLOATS, may_refuse={"dims": "shape"}
    ),
    rewrites("Equal of double", 11, 7, _equal("double[10]", "double[10]", "[10]"), into=ORDER, feeds=FLOATS),
    rewrites("Equal of floats that chunk", 11, 7, _equal("float[2,1]", "float[3]", "[2,3]"), into=ORDER),
    rewrites("Equal of floats that chunk", 11, 6, _equal("float[2,1]", "float[3]", "[2,3]")),
    rewrites("Equal of no floats", 11, 7, _equal("float[N]", "float[1]", "[N]"), dims={"N": 0}),
    rewrites("Equal of scalars", 11, 7, _equal("float", "float", ""), into=ORDER),
    *(keeps(f"Equal of {t}", 19, 7, _equal(f"{t}[3]", f"{t}[3]", "[3]")) for t in ("bool", "int32", "int64")),
    *(keeps(f"Equal of {t}", 7, 19, _equal(f"{t}[3]", f"{t}[3]", "[3]")) for t in ("bool", "int32", "int64")),
    refuses("Equal of uint8", 11, 10, _equal("uint8[3]", "uint8[3]", "[3]"), because="uint8"),
    keeps("Equal of floats", 19, 11, _equal("float[3]", "float[3]", "[3]")),
    rewrites("Equal of strings", 19, 18, _equal("string[2,3]", "string[2,1]", "[2,3]"), feeds=TEXTS),
    rewrites("Equal of strings", 19, 13, _equal("string[2,3]", "string[2,1]", "[2,3]"), feeds=TEXTS),
    rewrites(
        "Equal of string vectors",
        19,
        13,
        _equal("string[3]", "string[3]", "[3]"),
        into=["Concat", "Unique", "Shape", "Slice", "Slice", "Equal"],
        feeds={"a": ["x", "y", ""], "b": ["x", "z", ""]},
    ),
    rewrites("Equal of a string", 19, 13, _equal("string", "string[2]", "[2]"), feeds={"a": "x", "b": ["x", "y"]}),
    rewrites(
        "Equal of no strings",
        19,
        13,
        _equal("string[N,0]", "string[N,1]", "[N,0]"),
        dims={"N": 2},
        feeds={"b": [["x"], ["y"]]},
    ),
]

# ---- Pow


def _pow(base: str, exponent: str, constant: str = "") -> str:
    inputs, holder = (
        (f"{base}[4] x", f"<{exponent} e = {{{constant}}}>") if constant else (f"{base}[4] x, {exponent}[4] e", "")
    )
    return f"({inputs}) => ({base}[4] y) {holder} {{ y = Pow(x, e) }}"


POWERS = {"x": [1, 2, 3, 0], "e": [3, 2, 1, 0]}

POW: list[Row] = [
    keeps("Pow of one dtype", 15, 7, _pow("float", "float")),
    keeps("Pow of one dtype", 7, 15, _pow("float", "float")),
    rewrites("Pow by int8", 12, 11, _pow("float", "int8"), into=["Cast", "Pow"], feeds=POWERS),
    rewrites("Pow by int32", 15, 9, _pow("double", "int32"), into=["Cast", "Pow"], feeds=POWERS),
    rewrites("Pow by float", 13, 7, _pow("double", "float"), into=["Cast", "Pow"], feeds=POWERS),
    rewrites("Pow by a constant int64", 12, 11, _pow("float", "int64", "3"), into=["Pow"]),
    rewrites("Pow by a constant int64", 13, 6, _pow("float", "int64", "2"), into=["Pow"], may_refuse=NO_INTEGERS),
    rewrites(
        "Pow by a constant double",
        13,
        7,
        _pow("float", "double", "0.5"),
        into=["Pow"],
        feeds={"x": [1, 2, 3, 0]},
    ),
    refuses(
        "Pow by a constant double between floats", 13, 7, _pow("float16", "double", "0.1"), because="every exponent"
    ),
    refuses("Pow by int64", 12, 11, _pow("float", "int64"), because="every exponent is a value of", feeds=POWERS),
    refuses("Pow of int32", 12, 11, _pow("int32", "int32"), because="int32", feeds=POWERS),
    keeps("Pow of int32", 15, 12, _pow("int32", "int64"), feeds=POWERS),
]

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

# ---- Tile


def _tile(dtype: str, x: str, repeats: str, y: str) -> str:
    rank = len(repeats.split(","))
    return f"({dtype}[{x}] x) => ({dtype}[{y}] y) <int64[{rank}] r = {{{repeats}}}> {{ y = Tile(x, r) }}"


TILE_1 = "(float[2,3] x) => (float[2,6] y) <float t = {2}, float k = {1}> { y = Tile(x, t, k) }"

TILE: list[Row] = [
    rewrites("Tile of one axis", 1, 6, TILE_1, into=["Tile"]),
    rewrites("Tile of one axis", 1, 13, TILE_1, into=["Tile"]),
    rewrites("Tile of two axes", 6, 1, _tile("float", "2,3", "2,3", "4,9"), into=["Tile", "Tile"]),
    rewrites("Tile of one axis", 13, 5, _tile("float", "2,3", "1,2", "2,6"), into=["Tile"], may_refuse=NO_INTEGERS),
    rewrites("Tile of no axis", 6, 5, _tile("float", "2,3", "1,1", "2,3"), into=["Identity"]),
    rewrites(
        "Tile of bool", 6, 1, _tile("bool", "2,3", "2,3", "4,9"), into=["Gather", "Gather"], may_refuse={"dims": "bool"}
    ),
    rewrites("Tile of int64 to nothing", 6, 1, _tile("int64", "2,3", "1,0", "2,0"), may_refuse={"dims": "int64"}),
    rewrites("Tile of many", 6, 5, _tile("float", "1", "3000", "3000"), into=["Tile"], may_refuse={"dims": "float16"}),
]

# ---- constants

CONSTANTS: list[Row] = [
    refuses(
        "Sub of constants of bfloat16",
        18,
        12,
        "() => (bfloat16 y) <bfloat16 c = {1}> { y = Sub(c, c) }",
        because="bfloat16",
    ),
]

ROWS = [*EQUAL, *POW, *EXTREMA, *TILE, *CONSTANTS]
