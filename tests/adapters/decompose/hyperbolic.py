# SPDX-License-Identifier: Apache-2.0
"""Functions of angles where they do not exist."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run

# Few operators tell the shapes of what they make below opset 6, and then nothing can be stretched there.
NO_SHAPES = {"*": "repeated"}


def _typed(dtype: str, shape: str) -> str:
    """Returns a tensor of these sizes, a scalar of none."""
    return f"{dtype}[{shape}]" if shape else dtype


def _unary(call: str, shape: str = "12", dtype: str = "float", result: str = "") -> str:
    return f"({_typed(dtype, shape)} x) => ({_typed(result or dtype, shape)} y) {{ y = {call} }}"


def lowest(target: int) -> dict[str, Any]:
    """What may be refused at a target."""
    return {"may_refuse": NO_SHAPES} if target < 6 else {}


def _down(name: str, call: str, source: int, *targets: int, **more: Any) -> list[Row]:
    rows = [rewrites(name, source, target, _unary(call), **lowest(target), **more) for target in targets]
    nothing = rewrites(
        f"{name} of no elements", source, min(targets), _unary(call, "2,N"), dims={"N": 0}, **lowest(min(targets))
    )
    return [*rows, nothing]


# ---- functions of angles

AROUND_ONE = {"x": [1.0, 1.0001, 1.5, 2.0, 3.0, 10.0, 100.0, 1e4, 1e-3, 0.0, -3.0, inf]}
WITHIN_ONE = {"x": [0.0, 1e-6, -1e-4, 0.1, -0.3, 0.5, 0.9, -0.999, 1.0, -1.0, 2.0, nan]}
ANY_SIZE = {"x": [0.0, 1e-7, -1e-4, 0.1, -0.3, 1.0, 3.0, -9.0, 10.5, inf, -inf, nan]}

ANGLES: list[Row] = [
    *_down("Sinh", "Sinh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *_down("Cosh", "Cosh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *_down("Asinh", "Asinh(x)", 9, 8, 7, 6, 1, feeds=ANY_SIZE),
    *_down("Acosh", "Acosh(x)", 9, 8, 7, 6, 1, feeds=AROUND_ONE),
    *_down("Atanh", "Atanh(x)", 22, 8, 7, 6, 1, feeds=WITHIN_ONE),
]

CIRCULAR: list[Row] = [
    refuses(op, 22, 6, _unary(f"{op}(x)"), because="7") for op in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan")
]


ROWS = [*ANGLES, *CIRCULAR]

test_rows = each_of(ROWS)


Function = Callable[[np.ndarray], np.ndarray]
NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16}


NEWEST = onnx.defs.onnx_opset_version()


def model(opset: int, graph: str) -> ModelProto:
    if opset > NEWEST:
        pytest.skip(f"this onnx ends at opset {NEWEST}")
    parsed = onnx.parser.parse_graph(f"g {graph}")
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(parsed, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))


def converted(call: str, dtype: str, opset: int, target: int, x: np.ndarray) -> np.ndarray:
    source = model(opset, f"({dtype}[N] x) => ({dtype}[N] y) {{ y = {call}(x) }}")
    (y,) = run(onnx_convert.convert(source, to=target).model, {"x": x})
    return np.asarray(y)


def sizes(dtype: str, low: float, high: float, count: int = 400) -> np.ndarray:
    """Magnitudes from low to high, evenly by their logarithms, as float32 or the like."""
    return np.geomspace(low, high, count).astype(NUMPY[dtype])


# ---- relative errors

TINY = {"float": 1e-30, "double": 1e-200, "float16": 1e-3}
HUGE = {"float": 3.4e38, "double": 1.7e308, "float16": 65000.0}
CLOSE = {"float": 2e-6, "double": 1e-14, "float16": 1e-3}
OVERFLOW = {"float": 88.9, "double": 710.0, "float16": 11.7}  # exp of this still fits when halved


def _both_signs(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, -x])


DOMAINS: dict[str, tuple[Function, Callable[[str], np.ndarray]]] = {
    "Sinh": (np.sinh, lambda t: _both_signs(sizes(t, TINY[t], OVERFLOW[t]))),
    "Cosh": (np.cosh, lambda t: _both_signs(sizes(t, TINY[t], OVERFLOW[t]))),
    "Asinh": (np.arcsinh, lambda t: _both_signs(sizes(t, TINY[t], HUGE[t]))),
    "Acosh": (np.arccosh, lambda t: np.concatenate([1 + sizes(t, 1e-3, 1), sizes(t, 1, HUGE[t])])),
    "Atanh": (np.arctanh, lambda t: _both_signs(sizes(t, TINY[t], 0.999))),
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
