# SPDX-License-Identifier: Apache-2.0
"""Squeeze, Unsqueeze: `axes` moves from attribute to input at 13, and before 11 no axis is negative."""

from __future__ import annotations

from axes_texts import attribute, constant, run_time

from boundaries import Row, each_of, keeps, refuses, rewrites

S, U = "Squeeze", "Unsqueeze"

SQUEEZE: list[Row] = [
    rewrites("Squeeze one", 11, 13, attribute(S, "2,1,3,1", "2,3,1", "1"), into=[S]),
    rewrites("Squeeze two", 11, 13, attribute(S, "2,1,3,1", "2,3", "1,3"), into=[S]),
    rewrites("Squeeze negative", 11, 13, attribute(S, "2,1,3,1", "2,3", "-1,1"), into=[S]),
    rewrites("Squeeze", 1, 25, attribute(S, "1,3", "3", "0"), into=[S]),
    keeps("Squeeze all", 11, 13, attribute(S, "2,1,3,1", "2,3")),
    keeps("Squeeze all", 13, 11, attribute(S, "2,1,3,1", "2,3")),
    rewrites("Squeeze one", 13, 11, constant(S, "2,1,3,1", "2,3,1", "1"), into=[S]),
    rewrites("Squeeze two", 13, 11, constant(S, "2,1,3,1", "2,3", "1,-1"), into=[S]),
    rewrites("Squeeze of an unknown batch", 13, 11, constant(S, "N,1,3", "N,3", "1"), into=[S]),
    rewrites("Squeeze negative", 13, 10, constant(S, "2,1,3,1", "2,3", "1,-1")),
    rewrites("Squeeze negative", 11, 10, attribute(S, "2,1,3,1", "2,3", "-1,1")),
    rewrites("Squeeze at run time", 13, 11, run_time(S, "2,1,4,1", "?,?", 2), feeds={"i": [-1, 1]}),
    rewrites("Squeeze at run time", 13, 9, run_time(S, "2,1,4,1", "?,?,?", 1), feeds={"i": [-1]}),
    rewrites("Squeeze of nothing at run time", 13, 11, run_time(S, "1,0,3", "?,?", 1), feeds={"i": [0]}),
    rewrites("Squeeze of nothing at run time", 13, 9, run_time(S, "2,1,0", "?,?", 1), feeds={"i": [-2]}),
    rewrites("Squeeze two at the end", 11, 10, attribute(S, "2,3,1,1", "2,3", "-1,-2"), into=[S]),
    rewrites("Squeeze of nothing, negative", 11, 9, attribute(S, "2,0,1,3", "2,0,3", "-2"), into=[S]),
    rewrites(
        "Squeeze of int8", 25, 1, "(int8[2,1] x) => (int8[2] y) <int64[1] i = {1}> { y = Squeeze(x, i) }", into=[S]
    ),
    rewrites(
        "Squeeze twice by one constant",
        13,
        12,
        "(float[1,2,1] x, float[1,2,2] z) => (float[2,1] y, float[2,2] w) <int64[1] i = {0}> "
        "{ y = Squeeze(x, i) w = Squeeze(z, i) }",
        into=[S, S],
    ),
    rewrites(
        "Squeeze by a constant with another use",
        13,
        11,
        "(float[1,2] x) => (float[2] y, int64[1] j) <int64[1] i = {0}> { y = Squeeze(x, i) j = Neg(i) }",
        into=[S, "Neg"],
    ),
    refuses(
        "Squeeze of bfloat16",
        13,
        11,
        "(bfloat16[2,1] x) => (bfloat16[2] y) <int64[1] i = {1}> { y = Squeeze(x, i) }",
        because="bfloat16",
    ),
]

UNSQUEEZE: list[Row] = [
    rewrites("Unsqueeze one", 11, 13, attribute(U, "2,3", "2,1,3", "1"), into=[U]),
    rewrites("Unsqueeze two", 11, 13, attribute(U, "2,3", "1,2,3,1", "0,3"), into=[U]),
    rewrites("Unsqueeze negative", 11, 13, attribute(U, "2,3", "2,3,1", "-1"), into=[U]),
    rewrites("Unsqueeze a scalar", 1, 25, "(float x) => (float[1,1] y) { y = Unsqueeze<axes=[0,1]>(x) }", into=[U]),
    rewrites("Unsqueeze one", 13, 11, constant(U, "2,3", "2,1,3", "1"), into=[U]),
    rewrites("Unsqueeze two out of order", 13, 11, constant(U, "2,3", "1,2,3,1", "3,0"), into=[U]),
    rewrites("Unsqueeze two out of order", 13, 1, constant(U, "2,3", "1,2,3,1", "3,0"), into=[U]),
    rewrites("Unsqueeze negative", 13, 11, constant(U, "2,3", "2,1,3", "-2"), into=[U]),
    rewrites("Unsqueeze of an unknown batch", 13, 11, constant(U, "N,3", "N,1,3", "1"), into=[U]),
    rewrites("Unsqueeze negative", 13, 10, constant(U, "2,3", "2,1,3,1", "-1,1")),
    rewrites("Unsqueeze negative", 11, 10, attribute(U, "2,3", "2,3,1", "-1")),
    rewrites("Unsqueeze at run time", 13, 11, run_time(U, "2,4", "?,?,?,?", 2), feeds={"i": [-1, 1]}),
    rewrites("Unsqueeze at run time", 13, 9, run_time(U, "2,4", "?,?,?", 1), feeds={"i": [-1]}),
    rewrites("Unsqueeze of nothing at run time", 13, 9, run_time(U, "2,0", "?,?,?", 1), feeds={"i": [0]}),
    rewrites(
        "Unsqueeze a scalar at run time",
        13,
        11,
        "(float x, int64[1] i) => (float[?] y) { y = Unsqueeze(x, i) }",
        feeds={"i": [-1]},
    ),
    rewrites("Unsqueeze two negative", 11, 10, attribute(U, "2,3", "2,1,3,1", "-1,-3"), into=[U]),
    rewrites("Unsqueeze before all", 11, 10, attribute(U, "2,3", "1,2,3", "-3"), into=[U]),
    rewrites("Unsqueeze out of order", 11, 10, attribute(U, "2,3", "1,2,3,1", "3,0"), into=[U]),
    rewrites("Unsqueeze a scalar, negative", 11, 10, "(float x) => (float[1] y) { y = Unsqueeze<axes=[-1]>(x) }"),
    rewrites(
        "Unsqueeze of strings",
        13,
        11,
        "(string[2] x) => (string[2,1] y) <int64[1] i = {1}> { y = Unsqueeze(x, i) }",
        into=[U],
    ),
]


ROWS = [*SQUEEZE, *UNSQUEEZE]

test_rows = each_of(ROWS)
