# SPDX-License-Identifier: Apache-2.0
"""The binary operators: below 7 B fits into A as a contiguous block (`broadcast`, `axis`), from 7 both are stretched as
in numpy. Below 6 the arithmetic ones have `consumed_inputs` and floats only. Equal takes floats from 11 on and strings
from 19 on, Pow an exponent of another dtype from 12 on."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan

import pytest
from onnx import ModelProto, helper

import onnx_convert
from boundaries import Row, each_of, keeps, refuses, rewrites
from onnx_convert import InvalidModelError, RefusedError

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow")
LOGICAL = ("And", "Or", "Xor")
ORDER = ("Greater", "Less")
OPERATORS = (*ARITHMETIC, *LOGICAL, "Equal", *ORDER)
WITH_MEMORY_HINTS = ("Add", "Sub", "Mul", "Div")


def _shape(sizes: str) -> str:
    return f"[{sizes}]" if sizes else ""


def binary(operator: str, a: str, b: str, y: str, attributes: str = "") -> str:
    """Returns a graph of one binary operator; a, b and y are sizes, such as "2,3", with "" for a scalar."""
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

BROADCASTS: list[Row] = [
    *_blocks_up(6, 7, OPERATORS),
    *_blocks_up(1, 13, ("Sub", "Pow", "Xor")),
    *_stretches_down(7, 6, OPERATORS),
    *_stretches_down(7, 1, ("Sub", "Equal", "Greater")),
    *SQUARE,
    *EQUAL_SHAPES,
    *MEMORY,
    *MORE,
]


# Below 9 a Constant makes only floats, and a function has no initializers.
NO_INTEGERS = {"function": "floats"}

# ---- Equal

SPECIAL = {
    "a": [nan, inf, -inf, 0.0, -0.0, 1.0, 0.5, 3.0, nan, inf],
    "b": [nan, inf, inf, -0.0, 0.0, 1.0, 0.25, nan, 3.0, -inf],
}
TEXTS = {"a": [["x", "y", "zz"], ["", "ü", "x"]], "b": [["x"], [""]]}


def _equal(a: str, b: str, y: str) -> str:
    return f"({a} a, {b} b) => (bool{y} y) {{ y = Equal(a, b) }}"


EQUAL: list[Row] = [
    *(
        rewrites(
            "Equal of uint64",
            11,
            target,
            _equal("uint64[4]", "uint64[4]", "[4]"),
            feeds={"a": [0, 2**64 - 1, 2**63, 5], "b": [0, 2**64 - 1, 2**63 - 1, 6]},
            into=["Sub", "Cast", "Not"],
            options={"exact": True},
        )
        for target in (10, 7)
    ),
    rewrites("Equal of floats", 11, 10, _equal("float[10]", "float[10]", "[10]"), nodes=9, feeds=SPECIAL),
    rewrites("Equal of floats", 13, 7, _equal("float[10]", "float[10]", "[10]"), nodes=9, feeds=SPECIAL),
    rewrites("Equal of floats", 19, 6, _equal("float[10]", "float[10]", "[10]"), nodes=9, feeds=SPECIAL),
    rewrites(
        "Equal of floats", 11, 1, _equal("float[10]", "float[10]", "[10]"), feeds=SPECIAL, may_refuse={"dims": "shape"}
    ),
    rewrites("Equal of double", 11, 7, _equal("double[10]", "double[10]", "[10]"), nodes=9, feeds=SPECIAL),
    rewrites("Equal of floats that chunk", 11, 7, _equal("float[2,1]", "float[3]", "[2,3]"), nodes=9),
    rewrites("Equal of floats that chunk", 11, 6, _equal("float[2,1]", "float[3]", "[2,3]")),
    rewrites("Equal of no floats", 11, 7, _equal("float[N]", "float[1]", "[N]"), dims={"N": 0}),
    rewrites("Equal of scalars", 11, 7, _equal("float", "float", ""), nodes=9),
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


ROWS = [*BROADCASTS, *EQUAL, *POW]

test_rows = each_of(ROWS)


def legacy(a: list[int | None] | None, b: list[int | None] | None, **attributes: int) -> ModelProto:
    """Add-6 with broadcast; a shape may be unknown, as a whole or in parts."""
    values = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("a", a), ("b", b), ("c", a))]
    node = helper.make_node("Add", ["a", "b"], ["c"], "add", broadcast=1, **attributes)
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3)


@pytest.mark.parametrize("a", [None, [3, 3, 3], [None, None, None]])
@pytest.mark.parametrize("b", [None, [3], [None]])
def test_an_axis_counted_from_the_end_is_none_before_opset_7(a: list[int | None] | None, b: list[int | None]) -> None:
    with pytest.raises(RefusedError, match="axis -3 is none"):
        onnx_convert.convert(legacy(a, b, axis=-3), to=14)


@pytest.mark.parametrize(
    ("a", "b", "axis", "says"),
    [
        ([2, 3], [4], None, r"B of shape \[4\] is no block of A's \[2, 3\] at its end"),
        ([2, 3], [3], 0, r"B of shape \[3\] is no block of A's \[2, 3\] at axis 0"),
        ([2, 3], [3, 4], 1, "no block"),
        ([None, 3], [4], None, r"\[\?, 3\]"),
        ([2], [3, 2], None, "no block"),
    ],
)
def test_what_is_no_block_is_not_stretched(a: list[int | None], b: list[int], axis: int | None, says: str) -> None:
    source = legacy(a, b, **({} if axis is None else {"axis": axis}))
    for to in (7, 14):
        with pytest.raises(InvalidModelError, match=says):
            onnx_convert.convert(source, to=to)


@pytest.mark.parametrize("b", [[3], [2, 1], [2, 3, 4], [None, 4]])
def test_without_broadcast_shapes_are_the_same(b: list[int | None]) -> None:
    source = legacy([2, 3], b)
    del source.graph.node[0].attribute[:]
    says = r"without broadcast A and B have one shape, not \[2, 3\] and \[|do not go together"
    with pytest.raises((RefusedError, InvalidModelError), match=says):
        onnx_convert.convert(source, to=7)
    source = legacy([2, 3], [None, None])
    del source.graph.node[0].attribute[:]
    assert onnx_convert.convert(source, to=7).changed
