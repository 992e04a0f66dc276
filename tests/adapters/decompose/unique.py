# SPDX-License-Identifier: Apache-2.0
"""Unique (11) where it does not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run, validate

FEED = {"x": [2, 1, 1, 3, 4, 3, -1, 2]}


def unique(dtype: str, attributes: str = "", x: str = "8") -> str:
    outputs = f"{dtype}[A] y, int64[B] i, int64[C] j, int64[D] n"
    return f"({dtype}[{x}] x) => ({outputs}) {{ y, i, j, n = Unique{attributes}(x) }}"


ROWS: list[Row] = [
    rewrites("Unique", 11, 10, unique("float"), feeds=FEED),
    rewrites("Unique in the order of occurrence", 13, 10, unique("float", "<sorted=0>"), feeds=FEED),
    rewrites("Unique of a matrix", 11, 10, unique("float", x="2,4"), feeds={"x": [[2, 1, 1, 3], [4, 3, -1, 2]]}),
    rewrites(
        "Unique along the axis of a vector",
        11,
        10,
        unique("float", "<axis=-1>"),
        feeds=FEED,
        may_refuse={"ranks": "rank"},
    ),
    rewrites("Unique of bytes", 11, 10, unique("int8"), feeds=FEED),
    rewrites("Unique of int32", 11, 10, unique("int32", "<sorted=0>"), feeds=FEED),
    *(
        rewrites(f"Unique of {dtype}, far apart", 11, 10, unique(dtype), feeds=feeds, options={"exact": True})
        for dtype, feeds in (
            ("int64", {"x": [2**62, -(2**62), 5, -5, 2**62 + 1, -(2**62) - 1, 5, 1 << 22]}),
            ("int32", {"x": [2**31 - 1, -(2**31), 5, -5, 2**31 - 2, -(2**22), 5, 1 << 22]}),
            ("uint32", {"x": [2**32 - 1, 0, 5, 7, 2**32 - 2, 2**22, 5, 1 << 22]}),
        )
    ),
    rewrites("Unique values only", 11, 10, "(float[8] x) => (float[A] y) { y = Unique(x) }", feeds=FEED),
    refuses("Unique of strings", 11, 10, unique("string"), because="strings"),
    refuses("Unique rows", 11, 10, "(float[4,2] x) => (float[A,2] y) { y = Unique<axis=0>(x) }", because="a"),
]


test_rows = each_of(ROWS)


def computed(graph: str, source: int, target: int, feeds: dict[str, Any]) -> list[Any]:
    """Returns what the model computes at the target."""
    result = onnx_convert.convert(model(graph, source), to=target, expand="all").model
    validate(result)
    return run(result, feeds)


# ---- Unique


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.bool_, np.int8])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_unique_slices(dtype: type, axis: int | None) -> None:
    x = np.random.default_rng(5).integers(-1, 2, (6, 5, 2))
    x[3:] = x[:3]
    x[:, 3] = x[:, 1]
    wide = (x * (2**40 + 1)).astype(dtype) if dtype is np.int64 else x.astype(dtype)
    name = {"float32": "float"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    rank = "?,?,?" if axis is not None else "?"
    graph = (
        f"({name}[A,B,C] x) => ({name}[{rank}] y, int64[I] i, int64[J] j, int64[N] n) "
        f"{{ y, i, j, n = Unique{'' if axis is None else f'<axis={axis}>'}(x) }}"
    )
    wanted = np.unique(wide, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    for got, right in zip(computed(graph, 11, 10, {"x": wide}), wanted, strict=True):
        np.testing.assert_array_equal(got, right.reshape(got.shape))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("in_order", [0, 1])
def test_unique_of_nan_is_one_element(dtype: type, in_order: int) -> None:
    """As numpy has it, which the text refers to; onnxruntime takes NaN for equal to anything."""
    nan, inf = np.nan, np.inf
    x = np.array([nan, 1, inf, nan, 0, -0.0, -inf, 1, inf, nan], dtype)
    name = {"float32": "float", "float64": "double"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    outputs = f"{name}[?] y, int64[I] i, int64[J] j, int64[N] n"
    graph = f"({name}[A] x) => ({outputs}) {{ y, i, j, n = Unique<sorted={in_order}>(x) }}"
    y, first, inverse, counts = computed(graph, 11, 10, {"x": x})
    wanted = [-inf, 0, 1, inf, nan] if in_order else [nan, 1, inf, 0, -inf]
    np.testing.assert_array_equal(y, np.array(wanted, dtype))
    np.testing.assert_array_equal(first, [6, 4, 1, 2, 0] if in_order else [0, 1, 2, 4, 6])
    np.testing.assert_array_equal(y[inverse], x)
    np.testing.assert_array_equal(counts, [1, 2, 2, 2, 3] if in_order else [3, 2, 2, 2, 1])


def test_unique_rows_with_nan_are_equal_to_none() -> None:
    x = np.array([[np.nan, 1], [0, 1], [np.nan, 1], [0, 1]], np.float32)
    graph = "(float[A,B] x) => (float[?,?] y) { y = Unique<axis=0>(x) }"
    np.testing.assert_array_equal(computed(graph, 11, 10, {"x": x})[0], x[[1, 0, 2]])
