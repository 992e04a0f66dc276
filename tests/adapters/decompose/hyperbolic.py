# SPDX-License-Identifier: Apache-2.0
"""Functions of angles where they do not exist."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import numpy as np
import pytest
from elementwise import HUGE, TINY, both_signs, converted, down, sizes, unary

from boundaries import Row, each_of, refuses

# ---- functions of angles

AROUND_ONE = {"x": [1.0, 1.0001, 1.5, 2.0, 3.0, 10.0, 100.0, 1e4, 1e-3, 0.0, -3.0, inf]}
WITHIN_ONE = {"x": [0.0, 1e-6, -1e-4, 0.1, -0.3, 0.5, 0.9, -0.999, 1.0, -1.0, 2.0, nan]}
ANY_SIZE = {"x": [0.0, 1e-7, -1e-4, 0.1, -0.3, 1.0, 3.0, -9.0, 10.5, inf, -inf, nan]}

ANGLES: list[Row] = [
    *down("Sinh", "Sinh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *down("Cosh", "Cosh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *down("Asinh", "Asinh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *down("Acosh", "Acosh(x)", 9, 8, 7, 6, 1, feeds=AROUND_ONE),
    *down("Atanh", "Atanh(x)", 22, 8, 7, 6, 1, feeds=WITHIN_ONE),
]

CIRCULAR: list[Row] = [
    refuses(op, 22, 6, unary(f"{op}(x)"), because="7") for op in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan")
]


ROWS = [*ANGLES, *CIRCULAR]

test_rows = each_of(ROWS)


Function = Callable[[np.ndarray], np.ndarray]


# ---- relative errors

CLOSE = {"float": 2e-6, "double": 1e-14, "float16": 1e-3}
OVERFLOW = {"float": 88.9, "double": 710.0, "float16": 11.7}  # exp of this still fits when halved


DOMAINS: dict[str, tuple[Function, Callable[[str], np.ndarray]]] = {
    "Sinh": (np.sinh, lambda t: both_signs(sizes(t, TINY[t], OVERFLOW[t]))),
    "Cosh": (np.cosh, lambda t: both_signs(sizes(t, TINY[t], OVERFLOW[t]))),
    "Asinh": (np.arcsinh, lambda t: both_signs(sizes(t, TINY[t], HUGE[t]))),
    "Acosh": (np.arccosh, lambda t: np.concatenate([1 + sizes(t, 1e-3, 1), sizes(t, 1, HUGE[t])])),
    "Atanh": (np.arctanh, lambda t: both_signs(sizes(t, TINY[t], 0.999))),
}


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("op", DOMAINS)
def test_hyperbolic_functions_keep_their_digits(op: str, dtype: str) -> None:
    function, domain = DOMAINS[op]
    x = domain(dtype)
    wide = x.astype(np.float64) if dtype != "double" else x
    np.testing.assert_allclose(converted(op, dtype, 9, 8, x), function(wide), rtol=CLOSE[dtype])


@pytest.mark.parametrize("op", DOMAINS)
def test_hyperbolic_functions_beyond_the_numbers(op: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, -3.0], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(converted(op, "float", 9, 8, x), DOMAINS[op][0](x), rtol=1e-6)
