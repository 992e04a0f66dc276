# SPDX-License-Identifier: Apache-2.0
"""Activations where they do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise import CONDITIONAL, HUGE, NUMPY, SPECIAL, TINY, both_signs, converted, down, sizes, unary

from boundaries import Row, each_of, refuses, rewrites

# ---- activations

SMALL = {"x": [x / 100 for x in range(-6, 6)]}  # the function of Gelu, which runs for double, has a constant in float

ACTIVATIONS: list[Row] = [
    *down("SwiGLU with itself", "SwiGLU(x, x)", 28, 27, 24, 13, 6, 1),
    *down("SwiGLU with alpha", "SwiGLU<alpha=1.5>(x, x)", 28, 27, 13, 6, 1),
    *down("Swish", "Swish(x)", 24, 23, 13, 6, 1),
    *down("Swish with alpha", "Swish<alpha=0.5>(x)", 24, 23, 13, 6, 1),
    *down("HardSwish", "HardSwish(x)", 14, 13, 6, 1),
    *down("HardSwish", "HardSwish(x)", 22, 12),
    *down("Gelu", "Gelu(x)", 20, 19, 13, 9),
    *down("Gelu by Tanh", 'Gelu<approximate="tanh">(x)', 20, 19, 13, 9, 6, 1, feeds=SMALL),
    refuses("Gelu", 20, 8, unary("Gelu(x)"), because="error function"),
    *down("Mish", "Mish(x)", 18, 17, 13, 6, 1),
    *down("Celu", "Celu(x)", 12, 11, 6, 1),
    *down("Celu with alpha", "Celu<alpha=0.5>(x)", 12, 11, 6, 1),
    *down("Celu with a large alpha", "Celu<alpha=3.0>(x)", 12, 11),
    *down("Celu", "Celu(x)", 28, 27, 12, 11),
    refuses("Celu with alpha below 0", 12, 11, unary("Celu<alpha=-1.0>(x)"), because="alpha"),
    *down("ThresholdedRelu", "ThresholdedRelu(x)", 10, 9, 8, 7, 6, feeds=SPECIAL, options={"exact": True}),
    *down("ThresholdedRelu with alpha", "ThresholdedRelu<alpha=-0.5>(x)", 22, 9, 7, 1, feeds=SPECIAL),
    *down("Shrink", "Shrink(x)", 9, 8, 7, 6, feeds=SPECIAL, options={"exact": True}),
    *down("Shrink with bias", "Shrink<lambd=0.25,bias=0.75>(x)", 9, 8, 7, 6, 1, feeds=SPECIAL),
    *down("Shrink beyond 0", "Shrink<lambd=-0.25,bias=0.75>(x)", 9, 8, 7, feeds=SPECIAL),
    *(
        rewrites(f"Shrink of {t}", 9, 8, unary("Shrink<lambd=1.5,bias=1.5>(x)", "9", t), feeds={"x": range(9)})
        for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32")
    ),
    rewrites(
        "Shrink of int64",
        9,
        8,
        unary("Shrink<lambd=1.5>(x)", "5", "int64"),
        options=CONDITIONAL,
        feeds={"x": range(5)},
    ),
]

ERF: list[Row] = [refuses("Erf", 13, 8, unary("Erf(x)"), because="error function")]


ROWS = [*ACTIVATIONS, *ERF]

test_rows = each_of(ROWS)


# ---- relative errors


@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 4.0])
def test_celu_does_not_overflow(alpha: float, dtype: str) -> None:
    x = both_signs(sizes(dtype, TINY[dtype], HUGE[dtype]))
    opset = 12 if dtype == "float" else 28
    wide = x.astype(np.float64)
    expected = np.maximum(wide, 0) + np.minimum(0, alpha * np.expm1(np.minimum(wide, 0) / alpha))
    got = converted(f"Celu<alpha={alpha}>", dtype, opset, 11, x)
    np.testing.assert_array_equal(got[x > 0], x[x > 0])
    np.testing.assert_allclose(got[x <= 0], expected[x <= 0], rtol=1e-3, atol=1e-6)


def test_celu_of_double_is_not_rounded_to_float() -> None:
    x = np.linspace(-3, 3, 31)
    expected = np.maximum(x, 0) + np.minimum(0, 0.5 * np.expm1(x / 0.5))
    np.testing.assert_allclose(converted("Celu<alpha=0.5>", "double", 28, 27, x), expected, rtol=1e-14)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float", 1e-6), ("double", 1e-14)])
def test_gelu_by_tanh_means_the_text(dtype: str, tolerance: float) -> None:
    x = np.concatenate([np.linspace(-5, 5, 101), [1e3, -1e3, 1e30, -1e30]]).astype(NUMPY[dtype])
    wide = x.astype(np.float64)
    expected = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    got = converted('Gelu<approximate="tanh">', dtype, 20, 13, x)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("call", ["Swish", "Mish", "HardSwish"])
def test_activations_far_out(call: str) -> None:
    x = np.array([1e4, -1e4, 100.0, -100.0, 3e38, -3e38], np.float32)
    got = converted(call, "float", {"Swish": 24, "Mish": 18, "HardSwish": 14}[call], 13, x)
    np.testing.assert_allclose(got, np.maximum(x, 0), atol=1e-30)


def test_the_extremes_of_int32_are_not_rounded_by_shrink() -> None:
    x = np.array([-(2**31), 2**31 - 2, -(2**31) + 1, 0], np.int32)
    got = converted("Shrink", "int32", 9, 8, x)
    assert got.tolist() == x.tolist()
