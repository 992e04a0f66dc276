# SPDX-License-Identifier: Apache-2.0
"""Constant: elements without a tensor (12), dtypes other than floats (9); Cast and CastLike: attributes that concern
dtypes of later opsets only (19, 24), and strings (9)."""

from __future__ import annotations

from boundaries.rows import Row, keeps, refuses, rewrites


def _constant(y: str, attribute: str) -> str:
    return f"(double x) => ({y} y, double z) {{ y = Constant<{attribute}>() z = Identity(x) }}"


ELEMENTS = {
    "value_int": ("int64", "value_int=7"),
    "value_ints": ("int64[3]", "value_ints=[1,-2,3]"),
    "value_string": ("string", 'value_string="a"'),
    "value_strings": ("string[2]", 'value_strings=["a","b"]'),
}
TENSORS = {
    "int64": ("int64[2]", "value=int64[2] {1,-2}"),
    "int64 beyond double": ("int64", "value=int64 {9007199254740993}"),
    "int32": ("int32[2,1]", "value=int32[2,1] {1,-2}"),
    "bool": ("bool[2]", "value=bool[2] {1,0}"),
    "string": ("string[2]", 'value=string[2] {"a","b"}'),
}
# double, because there is a variant that makes every other float a float16
FLOATS = ("double[2]", "value=double[2] {0.5,1.5}")

CONSTANTS: list[Row] = [
    *(rewrites(f"Constant {name}", 12, 11, _constant(*made), into=["Identity"]) for name, made in ELEMENTS.items()),
    *(rewrites(f"Constant {name}", 25, 7, _constant(*made), into=["Identity"] * 2) for name, made in ELEMENTS.items()),
    *(keeps(f"Constant {name}", 12, 25, _constant(*made)) for name, made in ELEMENTS.items()),
    *(
        rewrites(f"Constant of {name}", 9, 8, _constant(*made), into=["Identity", "Identity"])
        for name, made in TENSORS.items()
    ),
    *(keeps(f"Constant of {name}", 12, 9, _constant(*made)) for name, made in TENSORS.items()),
    *(keeps(f"Constant of {name}", 9, 25, _constant(*made)) for name, made in TENSORS.items()),
    keeps("Constant of float", 25, 1, _constant(*FLOATS)),
    keeps("Constant of float", 1, 25, _constant(*FLOATS)),
    rewrites(
        "Constant shape for another adapter",
        12,
        7,
        "(float[2,3] x) => (float[3,2] y) { s = Constant<value_ints=[3,2]>() y = Reshape(x, s) }",
    ),
    *(
        rewrites(
            f"Constant {made}",
            25,
            1,
            f"(int32 x) => (int32{y} y, int32 z) {{ f = Constant<{made}>() y = Cast<to=6>(f) z = Identity(x) }}",
        )
        for made, y in (("value_float=7.5", ""), ("value_floats=[7.5]", "[1]"))
    ),
]


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

ROWS = [*CONSTANTS, *CASTS]
