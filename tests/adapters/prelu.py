# SPDX-License-Identifier: Apache-2.0
"""PRelu: the slope is no longer by channel (7)."""

from __future__ import annotations

import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, keeps, rewrites

NO_TILE = {"dims": "shape", "ranks": "shape"}


# ---- PRelu


def _prelu(x: str, slope: str, attributes: str = "") -> str:
    return f"(float[{x}] x, float{slope} s) => (float[{x}] y) {{ y = PRelu{attributes}(x, s) }}"


PRELU: list[Row] = [
    rewrites("PRelu by channel of an image", 6, 7, _prelu("2,3,4,5", "[3]")),
    rewrites("PRelu by channel of a cube of one size", 6, 7, _prelu("3,3,3", "[3]")),
    rewrites("PRelu by channel of a matrix", 6, 7, _prelu("2,3", "[3]"), into=["PRelu"]),
    rewrites("PRelu with one slope", 6, 7, _prelu("2,3,4", "[1]"), into=["PRelu"]),
    rewrites("PRelu with consumed_inputs", 1, 6, _prelu("2,3,4", "[3]", "<consumed_inputs=[0,0]>"), into=["PRelu"]),
    rewrites("PRelu with consumed_inputs", 1, 9, _prelu("2,3,4", "[3]", "<consumed_inputs=[0,0]>")),
    rewrites(
        "PRelu with constant slopes",
        6,
        16,
        "(float[N,2,H] x) => (float[N,2,H] y) <float[2] s = {0.5,-0.5}> { y = PRelu(x, s) }",
    ),
    rewrites("PRelu by channel of an image", 7, 6, _prelu("2,3,4,5", "[3,1,1]")),
    rewrites("PRelu by channel of a cube of one size", 7, 6, _prelu("3,3,3", "[3,1]")),
    rewrites("PRelu by column", 7, 6, _prelu("2,3,4,5", "[5]")),
    rewrites("PRelu by column of a cube of one size", 7, 6, _prelu("3,3,3", "[3]")),
    rewrites("PRelu by column of a matrix", 7, 6, _prelu("2,3", "[3]"), into=["PRelu"]),
    rewrites("PRelu by element", 7, 6, _prelu("2,3,4", "[2,3,4]")),
    rewrites("PRelu with one slope", 7, 6, _prelu("2,3,4", "[1]"), into=["PRelu"]),
    rewrites("PRelu with a scalar slope", 7, 6, _prelu("2,3,4", "")),
    rewrites("PRelu with a slope of three ones", 7, 6, _prelu("2,3,4", "[1,1,1]")),
    rewrites("PRelu by channel", 16, 1, _prelu("2,3,4", "[3,1]"), may_refuse=NO_TILE),
    keeps("PRelu", 6, 1, _prelu("2,3,4", "[3]")),
    rewrites(
        "PRelu of unknown rank by the last axis",
        7,
        6,
        "(float[2,2] v, int64[R] r, float[2] s) => (float[M] y) <int64[1] m = {-1}>"
        " { x = Reshape(v, r) z = PRelu(x, s) y = Reshape(z, m) }",
        feeds={"r": [2, 1, 2]},
        dims={"R": 3},
    ),
]


ROWS = PRELU

test_rows = each_of(ROWS)


@pytest.mark.parametrize(("x", "slope"), [("", "[S]"), ("[N]", "[2,N]"), ("[2,3]", "[1,1,1]")])
def test_a_slope_of_more_axes_than_the_data_is_not_valid(x: str, slope: str) -> None:
    graph = f"(float{x} x, float{slope} s) => (float[?] y) {{ z = PRelu(x, s) y = Shape(z) }}".replace(
        "float[?] y", "int64[?] y"
    )
    with pytest.raises((onnx_convert.RefusedError, onnx_convert.InvalidModelError)):
        onnx_convert.convert(model(graph, 16), to=6)
