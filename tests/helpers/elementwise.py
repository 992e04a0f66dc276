# SPDX-License-Identifier: Apache-2.0
"""Rows, models and data of operators that compute each element for itself."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import onnx.defs
import pytest
from onnx import ModelProto
from texts import model

import onnx_convert
from boundaries import Row, rewrites
from oracle import run

# Few operators tell the shapes of what they make below opset 6, and then nothing can be stretched there.
NO_SHAPES = {"*": "repeated"}
NO_INTEGERS = {"function": "floats"}  # below 9 a Constant makes only those, and a function has no initializers
CONDITIONAL = {"allow": ["conditional"]}

SPECIAL = {"x": [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.5, 60000.0]}

NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16}
TINY = {"float": 1e-30, "double": 1e-200, "float16": 1e-3}
HUGE = {"float": 3.4e38, "double": 1.7e308, "float16": 65000.0}

NEWEST = onnx.defs.onnx_opset_version()


def typed(dtype: str, shape: str) -> str:
    """Returns the text of a tensor of these sizes, of a scalar where there are none."""
    return f"{dtype}[{shape}]" if shape else dtype


def unary(call: str, shape: str = "12", dtype: str = "float", result: str = "") -> str:
    """Returns the text of a graph that computes y, of dtype `result`, from x by one call."""
    return f"({typed(dtype, shape)} x) => ({typed(result or dtype, shape)} y) {{ y = {call} }}"


def lowest(target: int) -> dict[str, Any]:
    """Returns the column of what may be refused at a target."""
    return {"may_refuse": NO_SHAPES} if target < 6 else {}


def down(name: str, call: str, source: int, *targets: int, **more: Any) -> list[Row]:
    """Returns a row for each target, and one of no elements at the lowest."""
    rows = [rewrites(name, source, target, unary(call), **lowest(target), **more) for target in targets]
    nothing = rewrites(
        f"{name} of no elements", source, min(targets), unary(call, "2,N"), dims={"N": 0}, **lowest(min(targets))
    )
    return [*rows, nothing]


def limits(t: str) -> tuple[int, int]:
    """Returns the least and the greatest integer of a dtype."""
    width = int(t.removeprefix("u").removeprefix("int"))
    return (0, 2**width - 1) if t[0] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def operands(t: str) -> dict[str, list[int]]:
    """Returns ten pairs of integers of a dtype, its extremes among them."""
    low, high = limits(t)
    return {
        "a": [low, high, low, 0, 1, 5, 7, 100, high - 3, low + 77],
        "b": [high, high, low, 7, 3, low, 13, 85, 2, high // 3],
    }


def known_model(opset: int, graph: str) -> ModelProto:
    """Returns the model of a graph; skips the test where the installed onnx does not know the opset."""
    if opset > NEWEST:
        pytest.skip(f"this onnx ends at opset {NEWEST}")
    return model(graph, opset)


def converted(call: str, dtype: str, opset: int, target: int, x: np.ndarray) -> np.ndarray:
    """Computes a call on x by the model that its conversion gives."""
    source = known_model(opset, f"({dtype}[N] x) => ({dtype}[N] y) {{ y = {call}(x) }}")
    (y,) = run(onnx_convert.convert(source, to=target).model, {"x": x})
    return np.asarray(y)


def sizes(dtype: str, low: float, high: float, count: int = 400) -> np.ndarray:
    """Returns magnitudes from low to high, evenly by their logarithms, as float32 or the like."""
    return np.geomspace(low, high, count).astype(NUMPY[dtype])


def both_signs(x: np.ndarray) -> np.ndarray:
    """Returns x, and after it -x."""
    return np.concatenate([x, -x])


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    """Asserts that two arrays are equal to the sign of zero, payloads of NaN apart."""
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])
