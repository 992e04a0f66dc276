# SPDX-License-Identifier: Apache-2.0
"""Expand (8), ConstantOfShape (9), Range (11) where they do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import run, validate

EXACT = {"exact": True}

FILL: list[Row] = [
    rewrites(
        "ConstantOfShape",
        9,
        8,
        "(int64[2] s) => (double[A,B] y) { f = ConstantOfShape(s) y = Cast<to=11>(f) }",
        feeds={"s": [2, 3]},
        options=EXACT,
    ),
    rewrites(
        "ConstantOfShape of integers",
        13,
        7,
        "(int64[3] s) => (int64[A,B,C] y) { y = ConstantOfShape<value=int64[1] {5}>(s) }",
        feeds={"s": [2, 0, 3]},
        options=EXACT,
    ),
    rewrites(
        "ConstantOfShape, a scalar",
        9,
        7,
        "(int64[0] s) => (double y) { y = ConstantOfShape<value=double[1] {2}>(s) }",
        options=EXACT,
    ),
    rewrites(
        "ConstantOfShape of a constant",
        9,
        6,
        "(double[2,3] x) => (double[2,3] y) <int64[2] s = {2, 3}>"
        " { c = ConstantOfShape<value=double[1] {2}>(s) y = Add(x, c) }",
        options=EXACT,
    ),
    rewrites(
        "ConstantOfShape, large",
        9,
        7,
        "(double[1,50] x) => (double[40,50] y) <int64[2] s = {40, 50}>"
        " { c = ConstantOfShape<value=double[1] {2}>(s) y = Mul(x, c) }",
        options=EXACT,
    ),
]

EXPAND: list[Row] = [
    rewrites(
        f"Expand {name}",
        source,
        target,
        f"({dtype}[{x}] x) => ({dtype}[{y}] y) <int64[{n}] s = {{{s}}}> {{ y = Expand(x, s) }}",
        options=EXACT,
    )
    for name, source, target, dtype, x, s, y in (
        ("along an axis", 8, 7, "float", "3,1", "3, 4", "3,4"),
        ("to a higher rank", 13, 6, "float", "3,1", "2, 1, 6", "2,3,6"),
        ("to a lower rank", 8, 7, "float", "2,3,1", "3, 4", "2,3,4"),
        ("that needs nothing", 8, 7, "float", "2,3", "1, 1", "2,3"),
        ("to nothing", 8, 7, "float", "2,1", "2, 0", "2,0"),
        ("of booleans", 8, 7, "bool", "1,2", "3, 2", "3,2"),
        ("of integers", 8, 7, "int64", "1", "4", "4"),
    )
    for n in [len(s.split(","))]
]
EXPAND += [
    rewrites(
        "Expand a scalar", 8, 7, "(float x) => (float[2,3] y) <int64[2] s = {2, 3}> { y = Expand(x, s) }", options=EXACT
    ),
    rewrites(
        "Expand to a computed shape",
        8,
        7,
        "(float[3,1] x, int64[3] s) => (float[A,3,B] y) { y = Expand(x, s) }",
        feeds={"s": [2, 1, 4]},
        options=EXACT,
    ),
    rewrites(
        "Expand to a lower computed shape",
        8,
        7,
        "(float[2,3,1] x, int64[1] s) => (float[2,3,B] y) { y = Expand(x, s) }",
        feeds={"s": [4]},
        options=EXACT,
    ),
]

RANGE: list[Row] = [
    rewrites(
        f"Range of {dtype} from {start} to {limit} by {step}",
        11,
        target,
        f"({dtype} a, {dtype} b, {dtype} c) => ({dtype}[K] y) {{ y = Range(a, b, c) }}",
        feeds={"a": start, "b": limit, "c": step},
    )
    for dtype, start, limit, step, target in (
        ("int64", 1, 10, 3, 8),
        ("int64", 10, 1, -4, 10),
        ("int32", 3, 3, 1, 10),
        ("int64", 5, 1, 2, 10),
        ("int16", -7, 8, 5, 9),
        ("float", 1.0, 2.0, 0.25, 9),
        ("double", 5.0, -1.0, -1.5, 10),
    )
]
RANGE += [
    rewrites(
        "Range up to a length",
        13,
        9,
        "(int64 n) => (int64[K] y) <int64 a = {0}, int64 c = {1}> { y = Range(a, n, c) }",
        feeds={"n": 5},
        options=EXACT,
    ),
    rewrites(
        "Range by a constant step",
        13,
        8,
        "(int64 n) => (int64[K] y) <int64 a = {7}, int64 c = {-3}> { y = Range(a, n, c) }",
        feeds={"n": -4},
        options=EXACT,
    ),
    rewrites(
        "Range of constants",
        11,
        7,
        "(int64[3] x) => (int64[3] y) <int64 a = {2}, int64 b = {8}, int64 c = {2}>"
        " { r = Range(a, b, c) y = Add(x, r) }",
        options=EXACT,
        into=["Identity", "Add"],
    ),
    rewrites(
        "Range of many constants",
        11,
        10,
        "() => (int64[N] y) <int64 a = {0}, int64 b = {100000}, int64 c = {1}> { y = Range(a, b, c) }",
    ),
]


EDGES: list[Row] = [
    rewrites(
        "Range of float of decimals",
        11,
        10,
        "(float a, float b, float c) => (float[N] y) { y = Range(a, b, c) }",
        feeds={"a": 0.1, "b": 1.1, "c": 0.05},
    ),
    rewrites(
        "Range of float as far as it goes",
        11,
        9,
        "(float a, float b, float c) => (float[N] y) { y = Range(a, b, c) }",
        feeds={"a": -3e38, "b": 3e38, "c": 2e38},
    ),
    rewrites(
        "Range of nothing, from zero to zero",
        11,
        7,
        "(double a, double b, double c) => (double[N] y) { y = Range(a, b, c) }",
        feeds={"a": 0.0, "b": -0.0, "c": 1.0},
    ),
]

ROWS = [*FILL, *EXPAND, *RANGE, *EDGES]

test_rows = each_of(ROWS)


def converted(graph: str, source: int, target: int, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target, **options).model
    validate(result)
    return result


def test_range_counts_beyond_what_float_holds() -> None:
    graph = "(int64 a, int64 b, int64 c) => (int64[N] y) { y = Range(a, b, c) }"
    feeds = {"a": np.array(2**40), "b": np.array(2**40 - 5), "c": np.array(-2)}
    np.testing.assert_array_equal(run(converted(graph, 11, 9), feeds)[0], [2**40, 2**40 - 2, 2**40 - 4])


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("target", [10, 8, 7])
@pytest.mark.parametrize(
    ("start", "limit", "step"),
    [
        (0, MOST, 2**62),
        (LEAST, MOST, 2**62),
        (-1, MOST, MOST),
        (MOST, LEAST, 1),
        (MOST, LEAST, LEAST),
        (MOST, LEAST, -(2**62)),
        (LEAST, LEAST + 3, 2),
        (2**53 + 1, 2**53 + 4, 1),
        (MOST - 1, MOST, 5),
    ],
)
@pytest.mark.parametrize("constant", [False, True])
def test_range_at_the_ends_of_int64(start: int, limit: int, step: int, target: int, *, constant: bool) -> None:
    """By the text: onnxruntime counts few of these right."""
    given = f"<int64 c = {{{step}}}>" if constant else ""
    graph = f"(int64 a, int64 b{'' if constant else ', int64 c'}) => (int64[N] y) {given} {{ y = Range(a, b, c) }}"
    feeds = {"a": np.array(start), "b": np.array(limit)} | ({} if constant else {"c": np.array(step)})
    result = converted(graph, 11, target)
    np.testing.assert_array_equal(run(result, feeds)[0], list(range(start, limit, step)))
