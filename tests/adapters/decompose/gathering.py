# SPDX-License-Identifier: Apache-2.0
"""Scatter (9), GatherElements, GatherND, ScatterElements, ScatterND (11) where they do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import run, validate


def gather(x: str, i: str, y: str, axis: int, dtype: str = "float") -> str:
    return f"({dtype}[{x}] x, int64[{i}] i) => ({dtype}[{y}] y) {{ y = GatherElements<axis={axis}>(x, i) }}"


def gather_nd(x: str, i: str, y: str, batch: int = 0) -> str:
    written = f"<batch_dims={batch}>" if batch else ""
    return f"(float[{x}] x, int64[{i}] i) => (float[{y}] y) {{ y = GatherND{written}(x, i) }}"


def scatter(operator: str, x: str, i: str, u: str, attributes: str = "", constant: str = "") -> str:
    free = "" if constant else f"int64[{i}] i, "
    made = f"<int64[{i}] i = {{{constant}}}>" if constant else ""
    return f"(float[{x}] x, {free}float[{u}] u) => (float[{x}] y) {made} {{ y = {operator}{attributes}(x, i, u) }}"


EXACT = {"exact": True}

GATHER: list[Row] = [
    rewrites(
        "GatherElements of a vector", 11, 7, gather("4", "6", "6", 0), feeds={"i": [0, 3, -1, -4, 2, 2]}, options=EXACT
    ),
    rewrites(
        "GatherElements along 0", 13, 9, gather("3,3", "2,2", "2,2", 0), feeds={"i": [[1, 2], [0, -1]]}, options=EXACT
    ),
    rewrites(
        "GatherElements along 1",
        11,
        8,
        gather("2,3", "2,4", "2,4", 1),
        feeds={"i": [[0, 1, 2, 0], [-1, 1, 0, 2]]},
        options=EXACT,
    ),
    rewrites("GatherElements along -1", 11, 8, gather("2,3", "1,2", "1,2", -1), feeds={"i": [[-3, 2]]}, options=EXACT),
    rewrites(
        "GatherElements along the middle",
        11,
        10,
        gather("2,3,4", "1,5,3", "1,5,3", 1),
        feeds={"i": [[[0, 1, 2]] * 5]},
        options=EXACT,
    ),
    rewrites("GatherElements of nothing", 11, 10, gather("2,3", "0,3", "0,3", 0), options=EXACT),
    rewrites("GatherElements of strings", 11, 9, gather("2,2", "2,1", "2,1", 1, "string"), feeds={"i": [[1], [0]]}),
    rewrites(
        "GatherND of elements",
        11,
        8,
        gather_nd("2,3", "4,2", "4"),
        feeds={"i": [[0, 1], [1, -1], [-2, 0], [1, 2]]},
        options=EXACT,
    ),
    rewrites(
        "GatherND of rows",
        13,
        9,
        gather_nd("3,2", "2,2,1", "2,2,2"),
        feeds={"i": [[[0], [2]], [[-1], [1]]]},
        options=EXACT,
    ),
    rewrites(
        "GatherND of matrices",
        11,
        10,
        gather_nd("2,3,2,2", "2,2", "2,2,2"),
        feeds={"i": [[0, 1], [-1, -1]]},
        options=EXACT,
    ),
    rewrites("GatherND in batches", 12, 9, gather_nd("2,3,2", "2,1", "2,2", 1), feeds={"i": [[1], [2]]}),
    rewrites("GatherND of nothing", 11, 10, gather_nd("2,3", "0,2", "0"), options=EXACT),
]

SCATTER: list[Row] = [
    rewrites(
        "ScatterElements",
        11,
        9,
        scatter("ScatterElements", "3,3", "2,3", "2,3"),
        feeds={"i": [[1, 0, 2], [0, -1, 1]]},
        options=EXACT,
    ),
    rewrites(
        "ScatterElements along -1",
        13,
        7,
        scatter("ScatterElements", "2,5", "2,2", "2,2", "<axis=-1>"),
        feeds={"i": [[1, -2], [0, 4]]},
        options=EXACT,
    ),
    rewrites(
        "ScatterElements to constant places",
        11,
        8,
        scatter("ScatterElements", "2,3", "1,2", "1,2", "<axis=1>", "2, 0"),
        options=EXACT,
    ),
    rewrites("ScatterElements of nothing", 11, 8, scatter("ScatterElements", "3", "0", "0"), options=EXACT),
    rewrites("Scatter below 9", 9, 7, scatter("Scatter", "3,2", "2,1", "2,1"), feeds={"i": [[2], [0]]}, options=EXACT),
    rewrites(
        "ScatterND of elements",
        11,
        8,
        scatter("ScatterND", "2,3", "3,2", "3"),
        feeds={"i": [[0, 1], [1, -1], [1, 0]]},
        options=EXACT,
    ),
    rewrites(
        "ScatterND of rows", 16, 9, scatter("ScatterND", "4,3", "2,1", "2,3"), feeds={"i": [[1], [-1]]}, options=EXACT
    ),
    rewrites(
        "ScatterND of matrices",
        11,
        10,
        scatter("ScatterND", "3,2,2", "1,2,1", "1,2,2,2"),
        feeds={"i": [[[0], [2]]]},
        options=EXACT,
    ),
    rewrites("ScatterND of nothing", 11, 10, scatter("ScatterND", "3,2", "0,1", "0,2"), options=EXACT),
]


ROWS = [*GATHER, *SCATTER]

test_rows = each_of(ROWS)


NAN, INF = float("nan"), float("inf")


def converted(graph: str, source: int, target: int, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target, **options).model
    validate(result)
    return result


# ---- indices


@pytest.mark.parametrize("target", [10, 7])
def test_updates_replace_infinities(target: int) -> None:
    graph = "(float[3] x, int64[2] i, float[2] u) => (float[3] y) { y = ScatterElements(x, i, u) }"
    feeds = {
        "x": np.array([INF, NAN, 5], np.float32),
        "i": np.array([0, -1]),
        "u": np.array([NAN, -INF], np.float32),
    }
    np.testing.assert_array_equal(run(converted(graph, 11, target), feeds)[0], [NAN, NAN, -INF])


def test_nothing_is_scattered() -> None:
    graph = "(float[3] x, int64[N] i, float[N] u) => (float[3] y) { y = ScatterElements(x, i, u) }"
    feeds = {"x": np.ones(3, np.float32), "i": np.zeros(0, np.int64), "u": np.zeros(0, np.float32)}
    np.testing.assert_array_equal(run(converted(graph, 11, 8), feeds)[0], [1, 1, 1])
