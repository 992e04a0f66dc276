# SPDX-License-Identifier: Apache-2.0
"""Compress, EyeLike, NonZero, OneHot (9), ReverseSequence (10), Trilu (14) where they do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import all_nodes, run, validate

CLASSES = {"i": [[1, 0, -1], [3, -3, 2]]}

COMPRESS: list[Row] = [
    rewrites(
        "Compress along 1",
        13,
        8,
        "(float[2,3,2] x, bool[3] c) => (float[2,K,2] y) { y = Compress<axis=1>(x, c) }",
        feeds={"c": [True, False, True]},
        options={"exact": True},
    ),
    rewrites(
        "Compress of nothing",
        11,
        7,
        "(float[2,3] x, bool[2] c) => (float[K,3] y) { y = Compress<axis=0>(x, c) }",
        feeds={"c": [False, False]},
    ),
    rewrites(
        "Compress flat, with a short condition",
        11,
        8,
        "(float[2,3] x, bool[4] c) => (float[K] y) { y = Compress(x, c) }",
        feeds={"c": [False, True, True, True]},
    ),
    rewrites(
        "Compress from the end",
        11,
        8,
        "(float[2,3] x, bool[2] c) => (float[2,K] y) { y = Compress<axis=-1>(x, c) }",
        feeds={"c": [False, True]},
    ),
]

EYE_LIKE: list[Row] = [
    rewrites("EyeLike", 13, 7, "(float[3,4] x) => (float[3,4] y) { y = EyeLike<k=1>(x) }", options={"exact": True}),
    rewrites("EyeLike below", 9, 8, "(float[3,2] x) => (int32[3,2] y) { y = EyeLike<k=-1, dtype=6>(x) }"),
    rewrites("EyeLike of booleans", 9, 8, "(float[2,2] x) => (bool[2,2] y) { y = EyeLike<dtype=9>(x) }"),
    rewrites("EyeLike, large", 9, 7, "(float[40,40] x) => (float[40,40] y) { y = EyeLike(x) }"),
    rewrites("EyeLike of nothing", 9, 8, "(float[0,3] x) => (float[0,3] y) { y = EyeLike(x) }"),
]

NON_ZERO: list[Row] = [
    rewrites(
        f"NonZero of {name}",
        13,
        7,
        f"({kind} x) => (int64[{rank},K] y) {{ y = NonZero(x) }}",
        options={"exact": True},
    )
    for name, kind, rank in (
        ("a vector", "float[7]", 1),
        ("a matrix", "int32[3,4]", 2),
        ("booleans", "bool[2,3,2]", 3),
        ("nothing", "float[2,0]", 2),
    )
]

ONE_HOT: list[Row] = [
    rewrites(
        f"OneHot at {axis}",
        11,
        7,
        f"(int64[2,3] i, float[2] v) => (float[{shape}] y) <int64 d = {{4}}> {{ y = OneHot<axis={axis}>(i, d, v) }}",
        feeds=CLASSES,
        options={"exact": True},
    )
    for axis, shape in ((-1, "2,3,4"), (0, "4,2,3"), (1, "2,4,3"), (2, "2,3,4"), (-2, "2,4,3"))
]
ONE_HOT += [
    rewrites(
        "OneHot of a computed depth",
        11,
        8,
        "(int32[2,3] i, int64 d, float[2] v) => (float[2,D,3] y) { y = OneHot<axis=1>(i, d, v) }",
        feeds={**CLASSES, "d": 4},
    ),
    rewrites(
        "OneHot of one class",
        9,
        8,
        "(int64[1] i, int64[2] v) => (int64[1,4] y) <int64[1] d = {4}> { y = OneHot(i, d, v) }",
        feeds={"i": [3]},
    ),
    rewrites(
        "OneHot of what is no class",
        9,
        8,
        "(int64[3] i, float[2] v) => (float[3,4] y) <int64 d = {4}> { y = OneHot(i, d, v) }",
        feeds={"i": [4, 1, -7]},
    ),
]

REVERSE: list[Row] = [
    rewrites(
        "ReverseSequence by time",
        13,
        9,
        "(float[4,3,2] x, int64[3] n) => (float[4,3,2] y) { y = ReverseSequence(x, n) }",
        nodes=13,
        feeds={"n": [2, 4, 1]},
        options={"exact": True},
    ),
    rewrites(
        "ReverseSequence by batch",
        10,
        7,
        "(float[3,4] x, int64[3] n) => (float[3,4] y) { y = ReverseSequence<time_axis=1, batch_axis=0>(x, n) }",
        feeds={"n": [1, 3, 4]},
        options={"exact": True},
    ),
]

TRILU: list[Row] = [
    rewrites("Trilu", 14, 13, "(float[3,4] x) => (float[3,4] y) { y = Trilu(x) }", into=["Where"]),
    refuses("Trilu of strings", 23, 13, "(string[3,4] x) => (string[3,4] y) { y = Trilu(x) }", because="string"),
    rewrites(
        "Trilu lower",
        16,
        7,
        "(float[2,3,3] x) => (float[2,3,3] y) { y = Trilu<upper=0>(x) }",
        feeds={"x": [[[1, float("inf"), 2], [float("nan"), 3, 4], [5, 6, float("-inf")]]] * 2},
        may_refuse={"dims": "Less", "ranks": "Less"},
    ),
    rewrites(
        "Trilu shifted",
        14,
        9,
        "(float[3,4] x) => (float[3,4] y) <int64 k = {-1}> { y = Trilu<upper=1>(x, k) }",
        options={"exact": True},
    ),
    rewrites(
        "Trilu shifted at run time",
        14,
        8,
        "(float[3,4] x, int64 k) => (float[3,4] y) { y = Trilu<upper=0>(x, k) }",
        feeds={"k": 1},
    ),
    rewrites(
        "Trilu, large",
        14,
        7,
        "(int64[40,50] x) => (int64[40,50] y) { y = Trilu(x) }",
        may_refuse={"dims": "Less", "ranks": "Less"},
    ),
    rewrites("Trilu of booleans", 14, 9, "(bool[3,4] x) => (bool[3,4] y) { y = Trilu(x) }", into=["And"]),
    rewrites(
        "Trilu of booleans, large",
        14,
        11,
        "(bool[40,50] x) => (bool[40,50] y) { y = Trilu<upper=0>(x) }",
        into=["Less", "Not", "And"],
    ),
    rewrites(
        "Trilu of booleans at run time",
        14,
        9,
        "(bool[N,4] x, int64 k) => (bool[N,4] y) { y = Trilu(x, k) }",
        feeds={"k": -1},
        dims={"N": 3},
    ),
    rewrites("Trilu of nothing", 14, 11, "(float[0,4] x) => (float[0,4] y) { y = Trilu(x) }"),
]


EDGES: list[Row] = [
    rewrites(
        f"Trilu of {sizes}{', lower,' * (not upper)} beyond int64, {k}",
        14,
        target,
        f"(float[{sizes}] x, int64 k) => (float[{sizes}] y) {{ y = Trilu<upper={upper}>(x, k) }}",
        feeds={"k": k},
        dims={"M": 3, "N": 4},
        options={"types": "cast", "allow": {"conditional"}},
    )
    for k in (-(2**63) + 8, 2**63 - 9, 2**53 + 1)
    for upper in (0, 1)
    for sizes, target in (("3,4", 13), ("M,N", 11))
]

ROWS = [*COMPRESS, *EYE_LIKE, *NON_ZERO, *ONE_HOT, *REVERSE, *TRILU, *EDGES]

test_rows = each_of(ROWS)


def converted(graph: str, source: int, target: int, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target, **options).model
    validate(result)
    return result


def test_a_small_mask_is_one_constant() -> None:
    result = converted("(float[8,8] x) => (float[8,8] y) { y = Trilu(x) }", 14, 13)
    assert [node.op_type for node in all_nodes(result)] == ["Where"]


@pytest.mark.parametrize("k", [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("sizes", ["3,4", "M,N", "40,50"])
@pytest.mark.parametrize("constant", [False, True])
def test_trilu_at_the_ends_of_int64(k: int, upper: int, sizes: str, *, constant: bool) -> None:
    """By the text: numpy and onnxruntime overflow."""
    given, formal = (f"<int64 k = {{{k}}}>", "") if constant else ("", ", int64 k")
    graph = f"(float[{sizes}] x{formal}) => (float[{sizes}] y) {given} {{ y = Trilu<upper={upper}>(x, k) }}"
    x = np.ones((40, 50) if sizes == "40,50" else (3, 4), np.float32)
    feeds = {"x": x} | ({} if constant else {"k": np.array(k)})
    (y,) = run(converted(graph, 14, 11), feeds)
    np.testing.assert_array_equal(y, x * ((k < 0) == bool(upper)))


def test_one_hot_of_a_scalar() -> None:
    graph = "(float[2] v) => (float[3] y) <int64 i = {-1}, int64 d = {3}> { y = OneHot(i, d, v) }"
    result = onnx_convert.convert(model(graph, 9), to=8).model
    np.testing.assert_array_equal(run(result, {"v": np.array([0, 1], np.float32)})[0], [0, 0, 1])
