# SPDX-License-Identifier: Apache-2.0
"""The dtypes that only a Cast carries across, and what comes of them."""

from __future__ import annotations

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, keeps, refuses, rewrites
from oracle import run


def _sum_of(dtype: str, operator: str = "Add") -> str:
    return f"({dtype}[6] a, {dtype}[6] b) => ({dtype}[6] y) {{ y = {operator}(a, b) }}"


# Sums, differences and products that leave the dtype, and must come back wrapped around.
WRAPPING = {
    "int8": ([127, -128, 100, -100, 1, 0], [1, -1, 100, -100, -1, 127]),
    "uint8": ([255, 0, 200, 16, 1, 128], [1, 1, 100, 16, 255, 2]),
    "int16": ([32767, -32768, 300, -300, 1, 0], [1, -1, 300, 300, -1, 9]),
    "uint16": ([65535, 0, 60000, 65535, 1, 256], [1, 1, 6000, 65535, 65535, 256]),
}

SMALL_INTEGERS: list[Row] = [
    row
    for dtype, (a, b) in WRAPPING.items()
    for operator in ("Add", "Sub", "Mul")
    for row in (
        refuses(f"{operator} of {dtype}", 14, 13, _sum_of(dtype, operator), because=dtype),
        rewrites(
            f"{operator} of {dtype} with Casts",
            14,
            13,
            _sum_of(dtype, operator),
            feeds={"a": a, "b": b},
            options={"types": "cast"},
            into=["Cast", "Cast", operator, "Cast"],
        ),
    )
] + [
    keeps("Add of int8", 14, 25, _sum_of("int8")),
    keeps("Add of int32", 14, 7, _sum_of("int32")),
    keeps("Add of int64", 13, 14, _sum_of("int64")),
    refuses("Relu of int8", 14, 13, "(int8[4] x) => (int8[4] y) { y = Relu(x) }", because="int8"),
    rewrites(
        "Relu of int8 with Casts",
        14,
        13,
        "(int8[4] x) => (int8[4] y) { y = Relu(x) }",
        feeds={"x": [-128, -1, 0, 127]},
        options={"types": "cast"},
    ),
    refuses("Neg of int32", 6, 5, "(int32[4] x) => (int32[4] y) { y = Neg(x) }", because="int32"),
    refuses("Add of int32", 6, 5, _sum_of("int32"), because="int32"),
]


# ---- constants

CONSTANTS: list[Row] = [
    refuses(
        "Sub of constants of bfloat16",
        18,
        12,
        "() => (bfloat16 y) <bfloat16 c = {1}> { y = Sub(c, c) }",
        because="bfloat16",
    ),
]


ROWS = [*SMALL_INTEGERS, *CONSTANTS]

test_rows = each_of(ROWS)


@pytest.mark.parametrize(("operator", "of_nothing"), [("ReduceMax", False), ("ReduceMin", True)])
@pytest.mark.parametrize("target", [17, 11, 9])
def test_the_extremum_of_no_booleans(operator: str, of_nothing: bool, target: int) -> None:
    """What int32 has in its place is no boolean. How many there are is known at run time only."""
    graph = f"(bool[N,3] x) => (bool[1,3] y) <int64[1] axes = {{0}}> {{ y = {operator}(x, axes) }}"
    conversion = onnx_convert.convert(model(graph, 20), to=target, types="cast")
    assert conversion.report.form == "exact"
    for rows in (0, 2):
        x = np.array([[True, False, True], [False, False, True]])[:rows]
        (y,) = run(conversion.model, {"x": x})
        expected = [[of_nothing] * 3] if not rows else [getattr(x, operator.removeprefix("Reduce").lower())(0)]
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("shape", "allow", "form"),
    [("2,3", (), "exact"), ("N,3", ("conditional",), "conditional"), ("N,3", (), ""), ("0,3", ("conditional",), "")],
)
def test_the_extremum_of_small_integers(shape: str, allow: tuple[str, ...], form: str) -> None:
    """Carried through int32 it is right if there is anything to reduce: known, not known, or known to be wrong."""
    graph = f"(uint8[{shape}] x) => (uint8[1,3] y) {{ y = ReduceMax<axes=[0]>(x) }}"
    if not form:
        with pytest.raises(onnx_convert.RefusedError, match=r"uint8|empty axis"):
            onnx_convert.convert(model(graph, 13), to=11, types="cast", allow=allow)
        return
    conversion = onnx_convert.convert(model(graph, 13), to=11, types="cast", allow=allow)
    assert conversion.report.form == form
    (y,) = run(conversion.model, {"x": np.array([[1, 200, 3], [9, 7, 255]], np.uint8)})
    assert y.tolist() == [[9, 200, 255]]
