# SPDX-License-Identifier: Apache-2.0
"""Det (11) where it does not exist."""

from __future__ import annotations

import numpy

from boundaries.rows import Row, refuses, rewrites

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
