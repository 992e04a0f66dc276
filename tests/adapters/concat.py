# SPDX-License-Identifier: Apache-2.0
"""Concat: `axis` is required from 4 on, and before 11 never negative."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites


def _concat(axis: int, y: str, x: str = "2,3,4", z: str = "2,3,4") -> str:
    return f"(float[{x}] x, float[{z}] z) => (float[{y}] y) {{ y = Concat<axis={axis}>(x, z) }}"


CONCAT: list[Row] = [
    rewrites("Concat by default", 1, 5, "(float[2,3] x) => (float[2,6] y) { y = Concat(x, x) }", into=["Concat"]),
    rewrites("Concat by default", 1, 13, "(float[2,3] x) => (float[2,6] y) { y = Concat(x, x) }", into=["Concat"]),
    keeps("Concat", 1, 13, _concat(1, "2,6,4")),
    keeps("Concat", 13, 1, _concat(1, "2,6,4")),
    rewrites("Concat at the end", 11, 10, _concat(-1, "2,3,8"), into=["Concat"]),
    rewrites("Concat at the beginning", 13, 1, _concat(-3, "4,3,4")),
    rewrites("Concat in the middle", 13, 9, _concat(-2, "2,5,4", z="2,2,4"), into=["Concat"]),
    rewrites("Concat in the middle of sizes N", 11, 7, _concat(-2, "N,?,M", "N,3,M", "N,2,M")),
    rewrites("Concat of nothing with something", 11, 9, _concat(-1, "2,3", "2,0", "2,3")),
    rewrites("Concat of nothing", 11, 9, _concat(-1, "N,?,3", "N,2,3", "N,2,0"), dims={"N": 0}),
    rewrites("Concat of vectors", 11, 9, _concat(-1, "5", "2", "3"), into=["Concat"]),
    rewrites("Concat of strings", 11, 9, "(string[2] x, string[1] z) => (string[3] y) { y = Concat<axis=-1>(x, z) }"),
]


ROWS = CONCAT

test_rows = each_of(ROWS)
