# SPDX-License-Identifier: Apache-2.0
"""GreaterOrEqual, LessOrEqual, IsNaN, IsInf, Sign, Round, Where: what compares and chooses, where it does not exist."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from elementwise import (
    NO_INTEGERS,
    NO_SHAPES,
    NUMPY,
    SPECIAL,
    both_signs,
    converted,
    down,
    known_model,
    lowest,
    same_bits,
    typed,
    unary,
)

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run

# ---- comparing and choosing

PAIRS = {
    "a": [nan, inf, -inf, 0.0, -0.0, 1.0, 0.5, 3.0, nan, inf],
    "b": [nan, inf, inf, -0.0, 0, 1, 0.25, nan, 3, -inf],
}


def _pair(op: str, dtype: str = "float", a: str = "10", b: str = "10", y: str = "10") -> str:
    return f"({typed(dtype, a)} a, {typed(dtype, b)} b) => ({typed('bool', y)} y) {{ y = {op}(a, b) }}"


COMPARISONS: list[Row] = [
    *(
        row
        for op in ("GreaterOrEqual", "LessOrEqual")
        for row in (
            *(
                rewrites(op, 12, target, _pair(op), feeds=PAIRS, options={"exact": True}, may_refuse=refused)
                for target, refused in ((11, {}), (10, {}), (9, {}), (7, {}), (6, {}), (1, NO_SHAPES))
            ),
            rewrites(f"{op} that chunks", 16, 7, _pair(op, "float", "2,1", "3", "2,3")),
            rewrites(f"{op} of scalars", 16, 7, _pair(op, "float", "", "", "")),
            *(
                rewrites(f"{op} of {t}", 12, 9, _pair(op, t), into=["Greater" if op[0] == "L" else "Less", "Not"])
                for t in ("int8", "uint8", "int32", "uint32", "int64", "uint64")
            ),
        )
    ),
    *(
        row
        for target in (8, 7, 6, 1)
        for row in (
            rewrites("IsNaN", 9, target, unary("IsNaN(x)", result="bool"), feeds=SPECIAL, **lowest(target)),
            rewrites("IsNaN of a scalar", 13, target, unary("IsNaN(x)", "", result="bool"), **lowest(target)),
        )
    ),
    *(
        rewrites(f"IsInf{sides}", 10, target, unary(f"IsInf{sides}(x)", result="bool"), feeds=SPECIAL, **lowest(target))
        for target in (9, 8, 7, 6, 1)
        for sides in (
            "",
            "<detect_positive=0>",
            "<detect_negative=0>",
            "<detect_positive=0,detect_negative=0>",
        )
    ),
    refuses("IsInf of bfloat16", 20, 9, unary("IsInf(x)", "3", "bfloat16", "bool"), because="bfloat16"),
    rewrites("IsInf", 20, 9, unary("IsInf(x)", result="bool"), feeds=SPECIAL),
    *down("Sign", "Sign(x)", 9, 8, 7, 6, 1, feeds={"x": [7.0, *SPECIAL["x"][1:]]}),
    *(  # onnxruntime makes 0 of a float16 that is no number
        rewrites("Sign of NaN", 9, target, unary("Sign(x)", "12", "double"), feeds=SPECIAL, **lowest(target))
        for target in (8, 7, 6, 1)
    ),
    *(
        rewrites(f"Sign of {t}", 9, target, unary("Sign(x)", "2,3", t), **lowest(target))
        for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
        for target in (8, 6, 1)
    ),
    *down("Round", "Round(x)", 11, 8, 7, 6, feeds=SPECIAL, options={"exact": True}),
    *down("Round", "Round(x)", 22, 10, 9, 1, feeds=SPECIAL),  # the Where of onnxruntime makes 0 of -0
]


def _where(dtype: str, c: str, x: str, y: str, z: str) -> str:
    x, y, z = (typed(dtype, shape) for shape in (x, y, z))
    return f"({typed('bool', c)} c, {x} x, {y} y) => ({z} z) {{ z = Where(c, x, y) }}"


CHOSEN = {
    "c": [[True, False], [False, True]],
    "x": [[nan, 1.0], [inf, 7.0]],
    "y": [[5.0, inf], [-6.0, nan]],
}
ROWS_BY_DTYPE = {
    "float": ["Cast", "Not", "Cast", "Pow", "Pow", "Mul"],
    "bool": ["And", "Not", "And", "Or"],
    "int64": ["Cast", "Not", "Cast", "Mul", "Mul", "Add"],
}
TEXTS = {"x": [["a", "b"], ["", "ü"]], "y": [["c", ""], ["d", "e"]]}

CHOICES: list[Row] = [
    *(
        rewrites(
            "Where", source, target, _where("float", "2,2", "2,2", "2,2", "2,2"), feeds=CHOSEN, options={"exact": True}
        )
        for source, target in ((9, 8), (9, 7), (16, 7), (9, 6))
    ),
    rewrites("Where", 9, 1, _where("float", "2,2", "2,2", "2,2", "2,2"), feeds=CHOSEN, may_refuse=NO_SHAPES),
    *(
        rewrites(f"Where of {t}", 9, target, _where(t, "2,2", "2,2", "2,2", "2,2"), into=ROWS_BY_DTYPE.get(t))
        for t in ("float", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
        for target in (8, 7, 6)
    ),
    *(
        rewrites(f"Where of {t} that chunks", 9, target, _where(t, "2,1", "3", "4,1,1", "4,2,3"))
        for t in ("float", "bool", "int64", "int8")
        for target in (8, 7, 6)
    ),
    rewrites("Where of scalars", 9, 7, _where("float", "", "", "", "")),
    rewrites("Where of nothing", 9, 7, _where("float", "N", "1", "N", "N"), dims={"N": 0}),
    *(
        rewrites(
            f"Where with 0 for {name}",
            9,
            target,
            f"(bool[2,3] c, float[3] x) => (float[2,3] z) <float zero = {{0.0}}> {{ z = Where(c, {inputs}) }}",
            feeds={"x": [nan, inf, -2.0]},
            into=operators if target > 6 else None,
        )
        for name, inputs, operators in (
            ("x", "zero, x", ["Not", "Cast", "Pow", "Mul"]),
            ("y", "x, zero", ["Cast", "Pow", "Mul"]),
        )
        for target in (8, 7, 6)
    ),
    *(
        rewrites(f"Where of strings {name}", 9, 8, _where("string", *shapes), feeds=feeds, may_refuse=NO_INTEGERS)
        for name, shapes, feeds in (
            ("", ("2,2", "2,2", "2,2", "2,2"), TEXTS),
            ("that chunks", ("2,1", "2", "1", "2,2"), {"x": ["a", "b"], "y": ["c"]}),
            ("of unknown number", ("N,2", "2", "N,1", "N,2"), {"x": ["a", "b"], "y": [["c"], ["d"]]}),
            ("of rank 0", ("", "", "", ""), {"x": "a", "y": "b"}),
            ("of no size", ("0,2", "2", "0,1", "0,2"), {"x": ["a", "b"]}),
        )
    ),
]


ROWS = [*COMPARISONS, *CHOICES]

test_rows = each_of(ROWS)


# ---- bits that must not change

FLOATS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3e38, -1e-45], np.float32)


@pytest.mark.parametrize("target", [8, 7, 6])
def test_where_gives_what_it_chooses(target: int) -> None:
    source = known_model(9, "(bool[N,1] c, float[M] x, float[M] y) => (float[N,M] z) { z = Where(c, x, y) }")
    feeds = {"c": np.array([[True], [False]]), "x": FLOATS, "y": FLOATS[::-1].copy()}
    (got,) = run(onnx_convert.convert(source, to=target, exact=True).model, feeds)
    same_bits(got, np.stack([feeds["x"], feeds["y"]]))


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("target", [8, 7])
def test_round_is_half_to_even(dtype: str, target: int) -> None:
    x = np.concatenate([np.arange(-40, 41) / 4, np.random.default_rng(0).standard_normal(500) * 100, FLOATS[:-2]])
    big = {"float": 2.0**23, "double": 2.0**52, "float16": 2.0**10}[dtype]
    x = both_signs(np.concatenate([x, [big - 0.5, big, big + 1, 2 * big - 1, 0.49999997]]).astype(NUMPY[dtype]))
    same_bits(converted("Round", dtype, 11, target, x), np.round(x))
