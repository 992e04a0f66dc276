# SPDX-License-Identifier: Apache-2.0
"""Det (11) where it does not exist."""

from __future__ import annotations

from typing import Any

import numpy
import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run, validate

ALL = {"expand": "all"}


def det(x: str, y: str = "") -> str:
    return f"(float[{x}] x) => (float{y} y) {{ z = Det(x) y = Identity(z) }}"


ROWS: list[Row] = [
    *(
        rewrites(f"Det of {x}", 11, target, det(x, y), options=ALL)
        for target in (10, 9, 8, 7)
        for x, y in (
            ("1,1", ""),
            ("2,2", ""),
            ("4,4", ""),
            ("5,5", ""),
            ("3,2,2", "[3]"),
            ("2,3,3,3", "[2,3]"),
            ("2,3,6,6", "[2,3]"),
            ("N,4,4", "[N]"),
            ("2,N,N", "[2]"),
        )
    ),
    rewrites("Det in half precision", 22, 10, "(float16[2,3,3] x) => (float16[2] y) { y = Det(x) }", options=ALL),
    rewrites("Det in double precision", 11, 10, "(double[2,7,7] x) => (double[2] y) { y = Det(x) }", options=ALL),
    *(
        rewrites(
            f"Det of a singular matrix of {size}", 11, 10, det(f"2,{size},{size}", "[2]"), feeds=feeds, options=ALL
        )
        for size in (3, 6)
        for feeds in ({"x": [numpy.zeros((size, size)), numpy.arange(size * size).reshape(size, size)]},)
    ),
    rewrites("Det of no matrices", 11, 10, det("0,3,3", "[0]"), options=ALL),
    rewrites("Det of nothing", 11, 10, det("2,0,0", "[2]"), options=ALL),
    refuses("Det unasked", 11, 10, det("5,5"), because="very large"),
]


test_rows = each_of(ROWS)


def computed(graph: str, source: int, target: int, feeds: dict[str, Any]) -> list[Any]:
    """Returns what the model computes at the target."""
    result = onnx_convert.convert(model(graph, source), to=target, expand="all").model
    validate(result)
    return run(result, feeds)


# ---- Det


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("known", [True, False])
def test_determinants(size: int, known: bool) -> None:
    x = np.random.default_rng(size).standard_normal((50, size, size)).astype(np.float32)
    x[1] = 0
    x[2, -1] = x[2, 0]  # of two equal rows
    x[3] = np.eye(size)[::-1]
    x[4] *= 2.0**40 if size <= 2 else 2.0 ** (120 // size)
    x[5] *= 2.0 ** -(120 // size)
    x[6, 0, 0] = 0
    (y,) = computed(
        f"(float[{f'50,{size},{size}' if known else 'A,B,C'}] x) => (float[N] y) {{ y = Det(x) }}", 11, 10, {"x": x}
    )
    wanted = np.linalg.det(x.astype(np.float64))
    scale = np.prod(np.linalg.norm(x.astype(np.float64), axis=2), axis=1)  # the largest that it can be
    np.testing.assert_array_less(np.abs(y - wanted), 4e-6 * scale + 1e-37)


def test_large_elements_do_not_overflow() -> None:
    x = np.array([[[1e30, 1e30], [1e30, 1e30]], [[1e30, 1], [1, 1e-30]]], dtype=np.float32)
    (y,) = computed("(float[2,2,2] x) => (float[2] y) { y = Det(x) }", 11, 10, {"x": x})
    np.testing.assert_array_equal(y, [0, 0])
