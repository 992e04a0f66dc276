# SPDX-License-Identifier: Apache-2.0
"""Softmax, LogSoftmax, Hardmax: below 13 the input is cut into a matrix at `axis` (default 1, and before 11 never
negative), from 13 one axis (default -1) is normalised."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, rewrites

FAMILY = ("Softmax", "LogSoftmax", "Hardmax")
CUBE = "(float[2,3,4] x) => (float[2,3,4] y)"
MATRIX = "(float[3,4] x) => (float[3,4] y)"


def _family(op: str) -> list[Row]:
    def cube(attributes: str = "") -> str:
        return f"{CUBE} {{ y = {op}{attributes}(x) }}"

    def matrix(attributes: str = "") -> str:
        return f"{MATRIX} {{ y = {op}{attributes}(x) }}"

    return [
        # Up. Only the last axis means the same in both.
        rewrites(f"{op} axis 0", 12, 13, cube("<axis=0>")),
        rewrites(f"{op} axis 1", 12, 13, cube("<axis=1>")),
        rewrites(f"{op} axis 2, the last", 12, 13, cube("<axis=2>"), into=[op]),
        rewrites(f"{op} axis -1, the last", 12, 13, cube("<axis=-1>"), into=[op]),
        rewrites(f"{op} axis -2", 12, 13, cube("<axis=-2>")),
        rewrites(f"{op} axis -3", 12, 13, cube("<axis=-3>")),
        rewrites(f"{op} default axis", 12, 13, cube()),
        rewrites(f"{op} default axis of a matrix, the last", 12, 13, matrix(), into=[op]),
        rewrites(f"{op} axis 0 of a matrix", 12, 13, matrix("<axis=0>")),
        rewrites(f"{op} axis 0 of a vector", 12, 13, f"(float[4] x) => (float[4] y) {{ y = {op}<axis=0>(x) }}"),
        rewrites(f"{op} from the beginning", 1, 13, cube()),
        rewrites(f"{op} to the newest", 11, 22, cube("<axis=1>")),
        keeps(f"{op} axis 1", 1, 11, cube("<axis=1>")),
        keeps(f"{op} default axis", 6, 12, cube()),
        # Down.
        rewrites(f"{op} axis 0", 13, 12, cube("<axis=0>")),
        rewrites(f"{op} axis 1", 13, 12, cube("<axis=1>")),
        rewrites(f"{op} axis 2, the last", 13, 12, cube("<axis=2>"), into=[op]),
        rewrites(f"{op} axis -1, the last", 13, 12, cube("<axis=-1>"), into=[op]),
        rewrites(f"{op} axis -2", 13, 12, cube("<axis=-2>")),
        rewrites(f"{op} default axis", 13, 12, cube(), into=[op]),
        rewrites(f"{op} default axis of a matrix", 13, 12, matrix(), into=[op]),
        rewrites(f"{op} of a vector", 13, 12, f"(float[4] x) => (float[4] y) {{ y = {op}(x) }}", into=[op]),
        rewrites(f"{op} axis 1", 13, 9, cube("<axis=1>")),
        rewrites(f"{op} axis 1", 22, 7, cube("<axis=1>")),
        # A negative axis is not promised before 11.
        rewrites(f"{op} axis -1", 11, 10, cube("<axis=-1>"), into=[op]),
        rewrites(f"{op} axis -2", 11, 10, cube("<axis=-2>"), into=[op]),
        rewrites(f"{op} axis -3", 11, 9, cube("<axis=-3>"), into=[op]),
        keeps(f"{op} axis 2", 11, 10, cube("<axis=2>")),
    ]


ROWS = [row for op in FAMILY for row in _family(op)] + [
    rewrites(
        "Softmax axis 1 with one unknown size",
        12,
        13,
        "(float[N,3,4] x) => (float[N,3,4] y) { y = Softmax<axis=1>(x) }",
    ),
    rewrites(
        "Softmax axis 1 with two unknown sizes",
        12,
        13,
        "(float[M,N,4] x) => (float[M,N,4] y) { y = Softmax<axis=1>(x) }",
        nodes=8,
    ),
    rewrites(
        "Softmax between other nodes",
        12,
        13,
        "(float[2,3,4] x) => (float[2,3,4] y) { a = Relu(x) b = Softmax<axis=1>(a) y = Neg(b) }",
    ),
    rewrites(
        "Softmax of Softmax",
        13,
        12,
        "(float[2,3,4] x) => (float[2,3,4] y) { a = Softmax<axis=0>(x) y = Softmax<axis=1>(a) }",
    ),
    rewrites(
        "Softmax axis 1 of no rows",
        12,
        13,
        "(float[N,3,4] x) => (float[N,3,4] y) { y = Softmax<axis=1>(x) }",
        dims={"N": 0},
        may_refuse={},
    ),
    rewrites("Softmax axis 1, to the bit", 12, 13, f"{CUBE} {{ y = Softmax<axis=1>(x) }}", options={"exact": True}),
]


test_rows = each_of(ROWS)
