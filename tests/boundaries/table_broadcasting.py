# SPDX-License-Identifier: Apache-2.0
"""The binary operators: below 7 B fits into A as a contiguous block (`broadcast`, `axis`), from 7 both are stretched as
in numpy. Below 6 the arithmetic ones have `consumed_inputs` and floats only."""

from __future__ import annotations

from collections.abc import Iterator

from boundaries.rows import Row, keeps, refuses, rewrites

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow")
LOGICAL = ("And", "Or", "Xor")
ORDER = ("Greater", "Less")
OPERATORS = (*ARITHMETIC, *LOGICAL, "Equal", *ORDER)
WITH_MEMORY_HINTS = ("Add", "Sub", "Mul", "Div")


def _shape(sizes: str) -> str:
    return f"[{sizes}]" if sizes else ""


def binary(operator: str, a: str, b: str, y: str, attributes: str = "") -> str:
    """A graph of one binary operator; a, b and y are sizes, such as "2,3", with "" for a scalar."""
    dtype = "bool" if operator in LOGICAL else "int64" if operator == "Equal" else "float"
    result = "float" if operator in ARITHMETIC else "bool"
    written = f"<{attributes}>" if attributes else ""
    inputs = f"({dtype}{_shape(a)} a, {dtype}{_shape(b)} b)"
    return f"{inputs} => ({result}{_shape(y)} y) {{ y = {operator}{written}(a, b) }}"


# ---- up

# The examples of the text of Add-6: B's sizes, axis. With them, what is no suffix of A's only by luck.
A = "2,3,4,5"
BLOCKS: tuple[tuple[str, str], ...] = (
    ("", ""),
    ("1,1", ""),
    ("5", ""),
    ("4,5", ""),
    ("3,4", "axis=1"),
    ("2", "axis=0"),
    ("3", "axis=1"),
    ("2,3", "axis=0"),
    ("4,5", "axis=2"),
    ("1", "axis=1"),
    ("1,1,1,1", ""),
)


def _blocks_up(source: int, target: int, operators: tuple[str, ...]) -> Iterator[Row]:
    for operator in operators:
        for sizes, axis in BLOCKS:
            attributes = f"broadcast=1,{axis}".strip(",")
            name = f"{operator} with B ({sizes}) {axis}".strip()
            yield rewrites(name, source, target, binary(operator, A, sizes, A, attributes))


# Only the size tells that an axis is not the suffix, and B's own sizes do not.
SQUARE: list[Row] = [
    rewrites("Add of a square by columns", 6, 7, binary("Add", "3,3", "3", "3,3", "broadcast=1,axis=0")),
    rewrites("Sub of a square by rows", 6, 7, binary("Sub", "3,3", "3", "3,3", "broadcast=1,axis=1")),
    rewrites("Mul of a cube by its middle", 6, 7, binary("Mul", "3,3,3", "3", "3,3,3", "broadcast=1,axis=1")),
    rewrites("Div of a cube by its front", 6, 13, binary("Div", "3,3,3", "3,3", "3,3,3", "broadcast=1,axis=0")),
]

# ---- down

# A's sizes, B's sizes, the sizes of the result.
STRETCHES: tuple[tuple[str, str, str], ...] = (
    ("2,3", "", "2,3"),
    ("2,3,4,5", "5", "2,3,4,5"),
    ("2,3,4,5", "4,5", "2,3,4,5"),
    ("2,3,4,5", "3,4,1", "2,3,4,5"),
    ("2,3,4,5", "3,1,1", "2,3,4,5"),
    ("2,3,4,5", "1,3,4,1", "2,3,4,5"),
    ("2,3,4,5", "2,1,1,1", "2,3,4,5"),
    ("2,3,4,5", "2,1,4,1", "2,3,4,5"),
    ("2,3,4,5", "1,1,1,1", "2,3,4,5"),
    ("2,1,3", "4,1", "2,4,3"),
    ("5", "2,3,5", "2,3,5"),
    ("", "2,3", "2,3"),
    ("1,1", "3", "1,3"),
    ("2,3", "1,1,1", "1,2,3"),
)

# Below 6 nothing repeats a value as often as a run-time shape says.
NO_TILE = {"dims": "shape", "ranks": "shape"}


def _stretches_down(source: int, target: int, operators: tuple[str, ...]) -> Iterator[Row]:
    for operator in operators:
        for a, b, y in STRETCHES:
            name = f"{operator} of ({a}) and ({b})"
            may_refuse = NO_TILE if target < 6 else {}
            yield rewrites(name, source, target, binary(operator, a, b, y), may_refuse=may_refuse)


EQUAL_SHAPES: list[Row] = [
    *(keeps(f"{op} of equal shapes", 6, 7, binary(op, "2,3", "2,3", "2,3")) for op in OPERATORS),
    *(rewrites(f"{op} of equal shapes", 7, 6, binary(op, "2,3", "2,3", "2,3"), into=[op]) for op in OPERATORS),
    *(
        rewrites(f"{op} of equal shapes", 13, 1, binary(op, "2,3", "2,3", "2,3"), into=[op], may_refuse=NO_TILE)
        for op in OPERATORS
    ),
    *(
        rewrites(f"{op} with broadcast=0", 6, 7, binary(op, "2,3", "2,3", "2,3", "broadcast=0"), into=[op])
        for op in OPERATORS
    ),
]

# ---- 1 <-> 6

MEMORY: list[Row] = [
    *(
        rewrites(
            f"{op} with consumed_inputs",
            1,
            6,
            binary(op, "2,3", "3", "2,3", "broadcast=1,consumed_inputs=[0,0]"),
            into=[op],
        )
        for op in WITH_MEMORY_HINTS
    ),
    *(
        rewrites(
            f"{op} with consumed_inputs", 1, 7, binary(op, A, "3,4", A, "broadcast=1,axis=1,consumed_inputs=[0,0]")
        )
        for op in WITH_MEMORY_HINTS
    ),
    *(keeps(f"{op} with broadcast", 6, 1, binary(op, A, "3,4", A, "broadcast=1,axis=1")) for op in OPERATORS),
    *(keeps(f"{op} with broadcast", 1, 6, binary(op, A, "3,4", A, "broadcast=1,axis=1")) for op in OPERATORS),
    refuses(
        "Add of int64",
        6,
        1,
        "(int64[2] a, int64[2] b) => (int64[2] y) { y = Add(a, b) }",
        because="int64",
    ),
]

# ---- constants, unknown sizes, company

MORE: list[Row] = [
    rewrites(
        "Add of a bias by channel",
        6,
        7,
        "(float[N,3,4] x) => (float[N,3,4] y) <float[3] b = {1,2,3}> { y = Add<broadcast=1,axis=1>(x, b) }",
    ),
    rewrites(
        "Mul by a scalar constant",
        6,
        7,
        "(float[N,3] x) => (float[N,3] y) <float s = {2}> { y = Mul<broadcast=1>(x, s) }",
    ),
    rewrites(
        "Add of a bias by channel",
        7,
        6,
        "(float[N,3,4] x) => (float[N,3,4] y) <float[3,1] b = {1,2,3}> { y = Add(x, b) }",
    ),
    rewrites("Sub of a block of nothing", 6, 7, binary("Sub", "2,0,4", "2,0", "2,0,4", "broadcast=1,axis=0")),
    rewrites("Add of a block", 6, 7, binary("Add", A, "3,4", A, "broadcast=1,axis=1"), into=["Unsqueeze", "Add"]),
    rewrites("Add of a block", 7, 6, binary("Add", A, "3,4,1", A), into=["Squeeze", "Add"]),
    rewrites("Add of a bias that grows", 7, 6, binary("Add", "4", "2,3,4", "2,3,4"), into=["Add"]),
    rewrites("Less of a value that grows", 7, 6, binary("Less", "4", "2,3,4", "2,3,4"), into=["Greater"]),
    rewrites("Sub of a value that grows", 7, 6, binary("Sub", "4", "2,4", "2,4"), into=["Unsqueeze", "Tile", "Sub"]),
    rewrites("Mul by itself", 7, 6, "(float[M,?] x) => (float[M,?] y) { y = Mul(x, x) }", into=["Mul"]),
    rewrites("Mul by a scalar constant", 9, 6, "(float[N,3] x) => (float[N,3] y) <float s = {2}> { y = Mul(x, s) }"),
    rewrites("Add of unknown sizes", 7, 6, "(float[M,N] a, float[M,1] b) => (float[M,N] y) { y = Add(a, b) }"),
    rewrites(
        "Sub of sizes that may or may not be 1",
        7,
        6,
        "(float[M,N] a, float[K,L] b) => (float[?,?] y) { y = Sub(a, b) }",
        dims={"M": 1, "N": 3, "K": 2, "L": 1},
    ),
    rewrites(
        "Sub of nothing",
        7,
        6,
        "(float[M,N] a, float[K,L] b) => (float[?,?] y) { y = Sub(a, b) }",
        dims={"M": 0, "N": 3, "K": 1, "L": 3},
    ),
    rewrites(
        "Add of a chain",
        6,
        7,
        "(float[2,3,4] x, float[3] b) => (float[2,3,4] y) "
        "{ s = Add<broadcast=1,axis=1>(x, b) t = Mul<broadcast=1,axis=1>(s, b) y = Sub(t, x) }",
    ),
    rewrites(
        "Add of a chain",
        7,
        6,
        "(float[2,3,4] x, float[3,1] b) => (float[2,3,4] y) { s = Add(x, b) t = Mul(b, s) y = Sub(t, x) }",
    ),
    rewrites(
        "Equal of int32", 6, 7, "(int32[2,3] a, int32[2] b) => (bool[2,3] y) { y = Equal<broadcast=1,axis=0>(a, b) }"
    ),
    rewrites("Equal of bool", 7, 6, "(bool[2,3] a, bool[2,1] b) => (bool[2,3] y) { y = Equal(a, b) }"),
    rewrites("Add of int64", 7, 6, "(int64[2,3] a, int64[4,1,1] b) => (int64[4,2,3] y) { y = Add(a, b) }"),
    rewrites("Div of int64", 7, 6, "(int64[2,3] a, int64[2,1] b) => (int64[2,3] y) { y = Div(a, b) }"),
]

ROWS = [
    *_blocks_up(6, 7, OPERATORS),
    *_blocks_up(1, 13, ("Sub", "Pow", "Xor")),
    *_stretches_down(7, 6, OPERATORS),
    *_stretches_down(7, 1, ("Sub", "Equal", "Greater")),
    *SQUARE,
    *EQUAL_SHAPES,
    *MEMORY,
    *MORE,
]
