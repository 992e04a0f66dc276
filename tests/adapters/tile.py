# SPDX-License-Identifier: Apache-2.0
"""Tile, which repeats one axis at a time below 6."""

from __future__ import annotations

from boundaries import Row, each_of, rewrites

# Below 9 a Constant makes only floats, and a function has no initializers.
NO_INTEGERS = {"function": "floats"}

# ---- Tile


def _tile(dtype: str, x: str, repeats: str, y: str) -> str:
    rank = len(repeats.split(","))
    return f"({dtype}[{x}] x) => ({dtype}[{y}] y) <int64[{rank}] r = {{{repeats}}}> {{ y = Tile(x, r) }}"


TILE_1 = "(float[2,3] x) => (float[2,6] y) <float t = {2}, float k = {1}> { y = Tile(x, t, k) }"

TILE: list[Row] = [
    rewrites("Tile of one axis", 1, 6, TILE_1, into=["Tile"]),
    rewrites("Tile of one axis", 1, 13, TILE_1, into=["Tile"]),
    rewrites("Tile of two axes", 6, 1, _tile("float", "2,3", "2,3", "4,9"), into=["Tile", "Tile"]),
    rewrites("Tile of one axis", 13, 5, _tile("float", "2,3", "1,2", "2,6"), into=["Tile"], may_refuse=NO_INTEGERS),
    rewrites("Tile of no axis", 6, 5, _tile("float", "2,3", "1,1", "2,3"), into=["Identity"]),
    rewrites(
        "Tile of bool", 6, 1, _tile("bool", "2,3", "2,3", "4,9"), into=["Gather", "Gather"], may_refuse={"dims": "bool"}
    ),
    rewrites("Tile of int64 to nothing", 6, 1, _tile("int64", "2,3", "1,0", "2,0"), may_refuse={"dims": "int64"}),
    rewrites(
        "Tile of float16 that many times",
        6,
        5,
        _tile("float16", "1", "2049", "2049"),
        into=["Gather"],
        may_refuse={"dims": "float16", "ranks": "float16"},
    ),
    *(
        rewrites(
            f"Tile of {dtype} {count} times",
            6,
            5,
            _tile(dtype, "2,N", f"{count},1", f"{2 * count},N"),
            into=["Gather"],
            may_refuse={"dims": "count", "ranks": "count", "function": "floats"},
            options={"types": "cast"},
        )
        for dtype in ("int8", "uint8", "bool")
        for count in (2, 300)
    ),
    rewrites("Tile of many", 6, 5, _tile("float", "1", "3000", "3000"), into=["Tile"], may_refuse={"dims": "float16"}),
]


ROWS = TILE

test_rows = each_of(ROWS)
