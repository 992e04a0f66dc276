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

# What a part of a shape is known to be stays known behind the rewrite of Shape, also where other sizes are not.
LOST = {"dims": "", "ranks": "", "function": "", "computed": ""}
PARTS: list[Row] = [
    rewrites(
        "ConstantOfShape of a known part",
        15,
        5,
        "(float[2,N] x) => (int64[2] y) { s = Shape<end=1>(x) y = ConstantOfShape<value=int64[1] {5}>(s) }",
        dims={"N": 0},
        may_refuse=LOST,
    ),
    rewrites(
        "Reshape to a known part",
        15,
        1,
        "(float[N,2,3] x, float[6] z) => (float[2,3] y) { s = Shape<start=-2>(x) y = Reshape(z, s) }",
        into=["Reshape"],
        dims={"N": 0},
        may_refuse=LOST,
    ),
    rewrites(
        "SplitToSequence by a known part",
        17,
        9,
        "(float[N,1,2] x, float[3,M] z) => (float[2,M] y) <int64 p = {-1}>"
        " { s = Shape<start=1>(x) t = SplitToSequence(z, s) y = SequenceAt(t, p) }",
        into=["Slice"],
        dims={"N": 3, "M": 0},
        may_refuse=LOST,
    ),
]


ROWS = SHAPE + PARTS

test_rows = each_of(ROWS)
