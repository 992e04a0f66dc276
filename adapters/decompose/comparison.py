# SPDX-License-Identifier: Apache-2.0
"""Operators that compare and choose.

9: Where, Sign and IsNaN are there.     10: IsInf.     11: Round.     12: GreaterOrEqual, LessOrEqual.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade, dtype_name
from onnx_convert.adapters.lib.dtypes import (
    BOOL,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT8,
    INT16,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    is_integer,
)
from onnx_convert.adapters.lib.shapes import count_up, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

LARGEST: Final = {
    FLOAT16: 65504.0,
    FLOAT: 3.4028234663852886e38,
    DOUBLE: 1.7976931348623157e308,
}
# Integers that have no arithmetic at all opsets, or none that runtimes know, and what holds each of them.
CARRIED: Final = {
    **dict.fromkeys((INT8, UINT8, INT16, UINT16), FLOAT),
    UINT32: INT64,
}


# ---- comparing


@downgrade("GreaterOrEqual", "LessOrEqual", at=12)
def compare_twice(node: Node, op: Emitter) -> Value:
    """Greater or equal; integers, which know no NaN, are just not less."""
    a, b = node.input(0), node.input(1)
    beyond, against = (op.Greater, op.Less) if node.operator == "GreaterOrEqual" else (op.Less, op.Greater)
    if is_integer(a.dtype or b.dtype or FLOAT):
        return op.Not(against(a, b))
    return op.Or(beyond(a, b), op.Equal(a, b))


@downgrade("IsNaN", at=9)
def nan_is_on_no_side(node: Node, op: Emitter) -> Value:
    """Finds what is neither less than 1 nor greater than 0."""
    return op.Not(_is_number(op, node.input(0), node.dtype(0)))


def _is_number(op: Emitter, x: Value, dtype: int) -> Value:
    return op.Or(op.Less(x, op.const(1, dtype)), op.Greater(x, op.const(0, dtype)))


@downgrade("IsInf", at=10)
def infinity_is_beyond_the_largest(node: Node, op: Emitter) -> Value:
    """Finds what is beyond the largest number of its dtype, on the sides that are asked for."""
    x, dtype = node.input(0), node.dtype(0)
    positive, negative = node.attr("detect_positive"), node.attr("detect_negative")
    if dtype not in LARGEST:
        node.refuse(f"there is no {dtype_name(dtype)} at opset 9", "go no lower than opset 10, or change the dtype")
    if not positive and not negative:
        return op.Less(x, x)
    if not positive:
        return op.Less(x, op.const(-LARGEST[dtype], dtype))
    return op.Greater(op.Abs(x) if negative else x, op.const(LARGEST[dtype], dtype))


@downgrade("Sign", at=9)
def subtract_sides(node: Node, op: Emitter) -> Value:
    """1 if above 0, less 1 if below; divided by 1, or by the 0 that a NaN is, which makes it NaN. Integers are compared
    as float, which keeps their signs."""
    x, dtype = node.input(0), node.dtype(0)
    if is_integer(dtype):
        return op.Cast(_sides(op, op.Cast(x, to=FLOAT), FLOAT), to=dtype)
    return op.Div(_sides(op, x, dtype), op.Cast(_is_number(op, x, dtype), to=dtype))


def _sides(op: Emitter, x: Value, dtype: int) -> Value:
    zero = op.const(0, dtype)
    return op.Sub(op.Cast(op.Greater(x, zero), to=dtype), op.Cast(op.Less(x, zero), to=dtype))


@downgrade("Round", at=11)
def round_by_large_number(node: Node, op: Emitter) -> Value:
    """A sum whose last bit is worth 1 is rounded to the even half; what has no fraction, 0 included, stays as it is."""
    x, dtype = node.input(0), node.dtype(0)
    if dtype == FLOAT16:  # its own sums might be made in a wider dtype
        return op.Cast(_rounded(op, op.Cast(x, to=FLOAT), FLOAT), to=FLOAT16)
    return _rounded(op, x, dtype)


def _rounded(op: Emitter, x: Value, dtype: int) -> Value:
    large, size = op.const(2.0**52 if dtype == DOUBLE else 2.0**23, dtype), op.Abs(x)
    whole = op.Sub(op.Add(size, large), large)
    has_fraction = op.And(op.Less(size, large), op.Greater(size, op.const(0, dtype)))
    return op.Where(has_fraction, op.Mul(whole, op.Sign(x)), x)


# ---- choosing


@downgrade("Where", at=9)
def choose_by_power(node: Node, op: Emitter) -> Value:
    """Floats to the power of 1 or 0, which makes 1 of a NaN or an infinity too, multiplied; integers times 1 or 0,
    added; booleans by logic; all else by index."""
    condition, x, y = (node.input(i) for i in range(3))
    dtype = x.dtype or y.dtype or node.dtype(1)
    if dtype == BOOL:
        return op.Or(op.And(condition, x), op.And(op.Not(condition), y))
    if is_integer(dtype):
        return _choose_integers(op, condition, x, y, dtype)
    if dtype not in LARGEST:
        return _choose_by_index(op, condition, x, y)
    if _is_zero(y):
        return _chosen_or_zero(op, condition, x, dtype)
    if _is_zero(x):
        return _chosen_or_zero(op, op.Not(condition), y, dtype)
    chosen, other = op.Cast(condition, to=dtype), op.Cast(op.Not(condition), to=dtype)
    return op.Mul(op.Pow(x, chosen), op.Pow(y, other))


def _chosen_or_zero(op: Emitter, condition: Value, x: Value, dtype: int) -> Value:
    exponent = op.Cast(condition, to=dtype)
    return op.Mul(op.Pow(x, exponent), exponent)


def _is_zero(value: Value) -> bool:
    """Returns whether a value is a scalar known to be 0, not -0."""
    known: numpy.ndarray[Any, Any] | None = value.constant if value.rank == 0 else None
    return known is not None and bool(known == 0) and not bool(numpy.signbit(known))


def _choose_integers(op: Emitter, condition: Value, x: Value, y: Value, dtype: int) -> Value:
    carrier = CARRIED.get(dtype, dtype)
    x, y = (value if carrier == dtype else op.Cast(value, to=carrier) for value in (x, y))
    chosen, other = op.Cast(condition, to=carrier), op.Cast(op.Not(condition), to=carrier)
    result = op.Add(op.Mul(x, chosen), op.Mul(y, other))
    return result if carrier == dtype else op.Cast(result, to=dtype)


def _choose_by_index(op: Emitter, condition: Value, x: Value, y: Value) -> Value:
    """Returns all elements of both in a row, gathered from the chosen places."""
    row_of_x, row_of_y = op.Reshape(x, op.const([-1])), op.Reshape(y, op.const([-1]))
    beyond = op.Add(_places(op, y, row_of_y), op.Size(x))
    places = _choose_integers(op, condition, _places(op, x, row_of_x), beyond, INT64)
    return op.Gather(op.Concat(row_of_x, row_of_y, axis=0), places, axis=0)


def _places(op: Emitter, x: Value, row: Value) -> Value:
    """Returns where each element of a value stands in the row of all, in the shape of the value."""
    sizes = x.shape
    if sizes is not None and all(isinstance(size, int) for size in sizes):
        op.subject.limit(*sizes)  # type: ignore[arg-type]
        return op.const(numpy.arange(prod(sizes)).reshape(sizes))  # type: ignore[arg-type]
    return reshape(op, count_up(op, op.Shape(row)), op.Shape(x))
