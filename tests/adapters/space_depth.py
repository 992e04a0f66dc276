# SPDX-License-Identifier: Apache-2.0
"""DepthToSpace and SpaceToDepth: the order of the channels (11, 28)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites


def _moved(operator: str, x: str, y: str, attributes: str, dtype: str = "float") -> str:
    return f"({dtype}[{x}] x) => ({dtype}[{y}] y) {{ y = {operator}<{attributes}>(x) }}"


CRD, DCR = 'blocksize=2,mode="CRD"', 'blocksize=2,mode="DCR"'
DEEP, FLAT = "2,12,2,3", "2,3,4,6"

BLOCKS: list[Row] = [
    rewrites("DepthToSpace CRD", 11, 10, _moved("DepthToSpace", DEEP, FLAT, CRD), into=["Gather", "DepthToSpace"]),
    rewrites(
        "DepthToSpace CRD",
        25,
        1,
        _moved("DepthToSpace", DEEP, FLAT, CRD),
        may_refuse={"dims": "int64", "ranks": "int64"},
    ),
    rewrites(
        "DepthToSpace CRD of unknown size",
        13,
        10,
        _moved("DepthToSpace", "N,12,H,W", "?,3,?,?", CRD),
        dims={"N": 2, "H": 3, "W": 2},
        into=["Gather", "DepthToSpace"],
    ),
    rewrites(
        "DepthToSpace CRD of nothing", 13, 10, _moved("DepthToSpace", "0,12,H,W", "0,3,?,?", CRD), dims={"H": 0, "W": 2}
    ),
    rewrites("DepthToSpace CRD of int64", 11, 10, _moved("DepthToSpace", DEEP, FLAT, CRD, "int64")),
    rewrites("DepthToSpace CRD by 3", 13, 10, _moved("DepthToSpace", "1,18,2,1", "1,2,6,3", 'blocksize=3,mode="CRD"')),
    rewrites("DepthToSpace DCR", 11, 10, _moved("DepthToSpace", DEEP, FLAT, DCR), into=["DepthToSpace"]),
    keeps("DepthToSpace", 1, 25, _moved("DepthToSpace", DEEP, FLAT, "blocksize=2")),
    keeps("DepthToSpace", 25, 1, _moved("DepthToSpace", DEEP, FLAT, "blocksize=2")),
    rewrites("SpaceToDepth CRD", 28, 27, _moved("SpaceToDepth", FLAT, DEEP, CRD), into=["SpaceToDepth", "Gather"]),
    rewrites(
        "SpaceToDepth CRD of unknown size",
        28,
        13,
        _moved("SpaceToDepth", "N,3,H,W", "?,12,?,?", CRD),
        dims={"N": 2, "H": 4, "W": 2},
        into=["SpaceToDepth", "Gather"],
    ),
    rewrites("SpaceToDepth DCR", 28, 1, _moved("SpaceToDepth", FLAT, DEEP, DCR), into=["SpaceToDepth"]),
    keeps("SpaceToDepth", 1, 28, _moved("SpaceToDepth", FLAT, DEEP, "blocksize=2")),
]


ROWS = BLOCKS

test_rows = each_of(ROWS)
