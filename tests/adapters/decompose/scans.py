# SPDX-License-Identifier: Apache-2.0
"""Scan (8), CumSum (11), CumProd (26) where they do not exist."""

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
HALVES = {"float16": "equivalent"}


def running(operator: str, x: str, axis: int, attributes: str = "", dtype: str = "float") -> str:
    graph = f"({dtype}[{x}] x) => ({dtype}[{x}] y) <int64 a = {{{axis}}}>"
    return f"{graph} {{ y = {operator}{attributes}(x, a) }}"


SUMS: list[Row] = [
    rewrites("CumSum", 11, 10, running("CumSum", "2,5", 1), into=["Expand", "Scan"], options=EXACT),
    rewrites("CumSum of a vector", 14, 7, running("CumSum", "5", 0), options=EXACT, may_refuse=HALVES),
    rewrites("CumSum from the end", 11, 9, running("CumSum", "2,3,4", -2, "<reverse=1>"), options=EXACT),
    rewrites("CumSum without itself", 11, 8, running("CumSum", "3,4", 0, "<exclusive=1>"), options=EXACT),
    rewrites(
        "CumSum of what follows",
        14,
        8,
        running("CumSum", "3,4", -1, "<exclusive=1, reverse=1>"),
        options=EXACT,
        may_refuse=HALVES,
    ),
    rewrites("CumSum of integers", 14, 9, running("CumSum", "3,4", 0, dtype="int32"), options=EXACT),
    rewrites("CumSum of nothing", 14, 9, running("CumSum", "2,0", 1, dtype="int64")),
    rewrites(
        "CumSum along a computed axis",
        14,
        9,
        "(float[2,3,4] x, int32 a) => (float[2,3,4] y) { y = CumSum(x, a) }",
        feeds={"a": -2},
        options=EXACT,
        may_refuse=HALVES,
    ),
    *(
        rewrites(
            f"{operator} of an empty {x} along {axis}", source, target, running(operator, "A,B,C", axis), dims=dims
        )
        for operator, source, target in (("CumSum", 11, 9), ("CumSum", 14, 7), ("CumProd", 28, 25))
        for x, dims in (("column", {"A": 0, "B": 2, "C": 3}), ("row", {"A": 2, "B": 0, "C": 3}))
        for axis in (0, 1, -1)
    ),
    *(
        rewrites(
            f"{operator} of {'a known' if x[0] == '2' else 'an'} empty value along a computed axis",
            source,
            target,
            f"(float[{x}] x, int32 a) => (float[{x}] y) {{ y = {operator}(x, a) }}",
            feeds={"a": -1},
            dims={"A": 2, "B": 0, "C": 3},
        )
        for operator, source, target in (("CumSum", 14, 9), ("CumProd", 28, 25))
        for x in ("2,0,3", "A,B,C")
    ),
    rewrites("CumProd", 26, 25, running("CumProd", "2,5", 1), into=["Expand", "Scan"]),
    rewrites("CumProd of what follows", 26, 13, running("CumProd", "3,4", -1, "<exclusive=1, reverse=1>")),
]

BODY = "body (float[2] p, float[2] q) => (float[2] r, float[2] v) { r = Add(p, q) v = Mul(r, q) }"

SCANS: list[Row] = [
    rewrites(
        "Scan below 8",
        8,
        7,
        "(float[3,2] s, float[3,4,2] x) => (float[3,2] t, float[3,4,2] z)"
        f" {{ t, z = Scan<num_scan_inputs=1, body={BODY}>(, s, x) }}",
    ),
    rewrites(
        "Scan of one member",
        9,
        7,
        "(float[2] s, float[4,2] x) => (float[2] t, float[4,2] z)"
        f" {{ t, z = Scan<num_scan_inputs=1, body={BODY}>(s, x) }}",
    ),
    rewrites(
        "Scan from the end",
        8,
        7,
        "(float[3,2] s, float[3,4,2] x) => (float[3,2] t, float[3,4,2] z)"
        f" {{ t, z = Scan<num_scan_inputs=1, directions=[1], body={BODY}>(, s, x) }}",
    ),
]


ROWS = [*SUMS, *SCANS]

test_rows = each_of(ROWS)


NAN, INF = float("nan"), float("inf")


def converted(graph: str, source: int, target: int, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target, **options).model
    validate(result)
    return result


# ---- CumSum


def test_a_sum_sees_nothing_of_what_comes_later() -> None:
    graph = "(float[2,3] x) => (float[2,3] y) <int64 a = {1}> { y = CumSum(x, a) }"
    x = np.array([[1, NAN, 2], [3, 4, INF]], np.float32)
    (y,) = run(converted(graph, 11, 9), {"x": x})
    np.testing.assert_array_equal(y, [[1, NAN, NAN], [3, 7, INF]])


@pytest.mark.parametrize("attributes", ["", "<exclusive=1>", "<reverse=1>", "<exclusive=1, reverse=1>"])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_the_axis_may_be_empty_at_run_time(length: int, attributes: str) -> None:
    graph = f"(float[2,N] x) => (float[2,N] y) <int64 a = {{-1}}> {{ y = CumSum{attributes}(x, a) }}"
    source, result = model(graph, 14), converted(graph, 14, 9)
    x = np.arange(2 * length, dtype=np.float32).reshape(2, length)
    np.testing.assert_array_equal(run(result, {"x": x})[0], run(source, {"x": x})[0])
