# SPDX-License-Identifier: Apache-2.0
"""Unique (11) where it does not exist."""

from __future__ import annotations

from boundaries.rows import Row, refuses, rewrites

FEED = {"x": [2, 1, 1, 3, 4, 3, -1, 2]}


def unique(dtype: str, attributes: str = "", x: str = "8") -> str:
    outputs = f"{dtype}[A] y, int64[B] i, int64[C] j, int64[D] n"
    return f"({dtype}[{x}] x) => ({outputs}) {{ y, i, j, n = Unique{attributes}(x) }}"


SLICES = {"x": [[[1, 1], [0, 1], [2, 1], [0, 1]], [[1, 1], [0, 1], [2, -1], [0, 1]]]}
ALL = {"expand": "all", "exact": True}
RANK = {"ranks": "rank"}


def slices(dtype: str, axis: int, order: int = 1) -> str:
    outputs = f"{dtype}[P,Q,R] y, int64[B] i, int64[C] j, int64[D] n"
    return f"({dtype}[2,4,2] x) => ({outputs}) {{ y, i, j, n = Unique<axis={axis},sorted={order}>(x) }}"


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
