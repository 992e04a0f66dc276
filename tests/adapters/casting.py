# SPDX-License-Identifier: Apache-2.0
"""Cast and CastLike: attributes that concern dtypes of later opsets only (19, 24), and strings (9)."""

from __future__ import annotations

from boundaries import Row, each_of, keeps, refuses, rewrites


def _cast(x: str, y: str, to: int, attributes: str = "") -> str:
    return f"({x}[2] x) => ({y}[2] y) {{ y = Cast<to={to}{attributes}>(x) }}"


def _cast_like(x: str, like: str, attributes: str = "") -> str:
    written = f"<{attributes}>" if attributes else ""
    return f"({x}[2] x, {like}[1] t) => ({like}[2] y) {{ y = CastLike{written}(x, t) }}"


INT32, STRING, FLOAT8 = 6, 8, 17

CASTS: list[Row] = [
    rewrites("Cast by name", 5, 6, '(float[2,3] x) => (int32[2,3] y) { y = Cast<to="INT32">(x) }', into=["Cast"]),
    rewrites("Cast with saturate", 19, 18, _cast("float", "int32", INT32, ",saturate=0"), into=["Cast"]),
    rewrites("Cast with round_mode", 24, 23, _cast("float", "int32", INT32, ',round_mode="up"'), into=["Cast"]),
    rewrites("Cast with both", 25, 1, _cast("float", "int32", INT32, ',round_mode="down",saturate=1'), into=["Cast"]),
    rewrites("CastLike with saturate", 19, 18, _cast_like("float", "int32", "saturate=0"), into=["CastLike"]),
    rewrites("CastLike with round_mode", 24, 15, _cast_like("float", "int32", 'round_mode="up"'), into=["CastLike"]),
    rewrites("CastLike", 15, 14, _cast_like("float", "int32"), into=["Cast"]),
    rewrites("CastLike", 25, 6, _cast_like("bool", "double"), into=["Cast"]),
    keeps("Cast", 25, 6, _cast("float", "int32", INT32)),
    keeps("Cast", 6, 25, _cast("float", "int32", INT32)),
    keeps("Cast from a string", 13, 9, _cast("string", "int32", INT32), feeds={"x": ["15", "-2"]}),
    refuses("Cast from a string", 9, 8, _cast("string", "int32", INT32), because="string", feeds={"x": ["15", "-2"]}),
    refuses("Cast to a string", 9, 7, _cast("int32", "string", STRING), because="string"),
    refuses("Cast to float8", 19, 18, _cast("float", "float8e4m3fn", FLOAT8, ",saturate=0"), because="float8"),
]


ROWS = CASTS

test_rows = each_of(ROWS)
