# SPDX-License-Identifier: Apache-2.0
"""Shape: a part of the shape (15)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites


def _shape(x: str, y: str, attributes: str) -> str:
    return f"(float{x} x) => (int64{y} y) {{ y = Shape<{attributes}>(x) }}"


SHAPE: list[Row] = [
    rewrites("Shape from 1", 15, 14, _shape("[2,3,4]", "[2]", "start=1"), into=["Shape", "Slice"]),
    rewrites("Shape from 1 to 2", 25, 1, _shape("[2,3,4]", "[1]", "start=1,end=2"), into=["Shape", "Slice"]),
    rewrites("Shape from -2 to -1", 15, 9, _shape("[2,3,4]", "[1]", "start=-2,end=-1"), into=["Shape", "Slice"]),
    rewrites("Shape beyond its ends", 15, 13, _shape("[2,3,4]", "[3]", "start=-9,end=9"), into=["Shape"]),
    rewrites("Shape of nothing", 15, 13, _shape("[2,3,4]", "[0]", "start=2,end=1")),
    rewrites("Shape of a scalar", 15, 13, _shape("", "[0]", "start=0,end=1")),
    rewrites("Shape from 0", 15, 13, _shape("[2,3,4]", "[3]", "start=0"), into=["Shape"]),
    keeps("Shape", 15, 14, "(float[2,3] x) => (int64[2] y) { y = Shape(x) }"),
]


ROWS = SHAPE

test_rows = each_of(ROWS)
