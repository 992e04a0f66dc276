# SPDX-License-Identifier: Apache-2.0
"""Mod, BitShift, BitwiseAnd and its kin where they do not exist."""

from __future__ import annotations

import re
from math import inf, nan

import numpy as np
import pytest
from elementwise import CONDITIONAL, NO_INTEGERS, known_model, limits, operands, typed, unary

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run

# ---- bits

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def _binary(op: str, t: str, a: str = "10", b: str = "10", y: str = "10") -> str:
    return f"({typed(t, a)} a, {typed(t, b)} b) => ({typed(t, y)} y) {{ y = {op}(a, b) }}"


def _mod(t: str) -> dict[str, list[int]]:
    low, high = limits(t)
    signed, low = (-1, low + 1) if low else (1, low)  # the lowest of all has no magnitude
    return {
        "a": [low, high, low, 0, 7, signed * 7, 7, signed * 7, 6, high],
        "b": [high, 2, 3, 5, 3, 3, signed * 3, signed * 3, signed * 3, low + high or 1],
    }


FLOAT_MOD = {
    "a": [5.5, -5.5, 5.5, -5.5, 0.0, 6.0, inf, 3.0, -3.0, 2.0],
    "b": [2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 2.0, inf, inf, nan],
}

BITS: list[Row] = [
    *(
        rewrites(f"Mod of {t}{how}", source, target, _binary(f"Mod{how}", t), feeds=_mod(t))
        for t in INTEGERS
        for how in ("", "<fmod=1>")
        for source, target in ((10, 9), (10, 6))
    ),
    rewrites("Mod that chunks", 13, 9, _binary("Mod", "int64", "2,1", "3", "2,3")),
    rewrites("Mod that chunks", 13, 6, _binary("Mod", "int64", "2,1", "3", "2,3")),
    *(
        rewrites("Mod of floats", 13, target, _binary("Mod<fmod=1>", "float"), options=CONDITIONAL, feeds=FLOAT_MOD)
        for target in (9, 8, 7)
    ),
    refuses("Mod of double on sight", 13, 9, _binary("Mod<fmod=1>", "double"), because="exact in double"),
    rewrites("Mod of float16", 13, 9, _binary("Mod<fmod=1>", "float16"), feeds=FLOAT_MOD),
    *(
        rewrites(
            f"BitShift of {t} to the {way}",
            11,
            target,
            _binary(f'BitShift<direction="{way}">', t),
            feeds={"a": operands(t)["a"], "b": [0, 1, 2, 3, 7, 1, 6, 5, int(t[4:]) - 1, 4]},
        )
        for t in ("uint8", "uint16", "uint32", "uint64")
        for way in ("LEFT", "RIGHT")
        for target in (10, 8, 7)
    ),
    *(
        rewrites(
            f"BitShift by a constant to the {way}",
            11,
            target,
            f'(uint8[2,3] a) => (uint8[2,3] y) <uint8[2,1] b = {{3,0}}> {{ y = BitShift<direction="{way}">(a, b) }}',
            may_refuse=NO_INTEGERS if target < 9 else {},
        )
        for way in ("LEFT", "RIGHT")
        for target in (10, 7)
    ),
    *(
        rewrites(f"{op} of {t}", 18, target, _binary(op, t), feeds=operands(t))
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for t in INTEGERS
        for target in (17, 10, 9, 7)
    ),
    rewrites("BitwiseAnd that chunks", 18, 13, _binary("BitwiseAnd", "int32", "2,1", "3", "2,3")),
    rewrites("BitwiseAnd of scalars", 18, 9, _binary("BitwiseAnd", "int32", "", "", "")),
    rewrites("BitwiseAnd of nothing", 18, 11, _binary("BitwiseAnd", "int32", "N", "1", "N"), dims={"N": 0}),
    *(
        rewrites(f"BitwiseNot of {t}", 18, target, unary("BitwiseNot(x)", "10", t), feeds={"x": operands(t)["a"]})
        for t in INTEGERS
        for target in (17, 12, 7)
    ),
    refuses(
        "Mod of floats like integers",
        10,
        9,
        "(float[2] a, float[2] b) => (float[2] y) { y = Mod(a, b) }",
        because="fmod is 0",
    ),
]


ROWS = BITS

test_rows = each_of(ROWS)


@pytest.mark.parametrize("target", [9, 8, 7])
def test_remainder_of_floats_is_exact(target: int) -> None:
    random = np.random.default_rng(0)
    a = np.concatenate([random.standard_normal(2000) * 1e4, [3.0, -3.0, -4.0, 0.0, np.inf, 2.0]]).astype(np.float32)
    b = np.concatenate([random.standard_normal(2000), [np.inf, -np.inf, 2.0, 3.0, 2.0, np.nan]]).astype(np.float32)
    kept = ~(np.abs(a) >= 2.0**28 * np.abs(b)) | np.isinf(a)
    a, b = a[kept], b[kept]
    source = known_model(13, "(float[N] a, float[N] b) => (float[N] y) { y = Mod<fmod=1>(a, b) }")
    with pytest.raises(onnx_convert.RefusedError, match=re.escape("2**28")):
        onnx_convert.convert(source, to=target)
    result = onnx_convert.convert(source, to=target, allow=["conditional"]).model
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(result, {"a": a, "b": b})[0], np.fmod(a, b))


def test_remainder_of_float16_is_exact_whatever_the_quotient() -> None:
    values = np.array([6e-8, -3.1e-5, 0.1, -1.0, 3.0, 777.0, 65504.0, np.inf], np.float16)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    source = known_model(13, "(float16[N] a, float16[N] b) => (float16[N] y) { y = Mod<fmod=1>(a, b) }")
    (got,) = run(onnx_convert.convert(source, to=9, exact=True).model, {"a": a, "b": b})
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, np.fmod(a, b))


BITWISE = {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("op", BITWISE)
def test_every_bit_is_combined(op: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    a, b = np.random.default_rng(0).integers(limits.min, limits.max, (2, 300), dtype=dtype, endpoint=True)
    a[:4], b[:4] = [limits.min, limits.max, limits.min, 0], [limits.max, limits.max, limits.min, limits.max]
    source = known_model(18, f"({dtype}[N] a, {dtype}[N] b) => ({dtype}[N] y) {{ y = Bitwise{op}(a, b) }}")
    (got,) = run(onnx_convert.convert(source, to=13, exact=True).model, {"a": a, "b": b})
    np.testing.assert_array_equal(got, BITWISE[op](a, b))
