# SPDX-License-Identifier: Apache-2.0
"""Integers as numbers and as bits.

10: Mod is there.     11: BitShift, unsigned.     18: BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot.

What the narrow integers lack, some operators and most runtimes, a wider one has, as which they are computed.
"""

from __future__ import annotations

from math import prod
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    UINT32,
    UINT64,
    is_integer,
    is_unsigned,
    width_of,
)

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

FEW: Final = 64
BITWISE: Final = {"BitwiseAnd": and_, "BitwiseOr": or_, "BitwiseXor": xor}


def _carrier(dtype: int) -> int:
    """Returns where one sum or quotient of integers of a dtype has room: in a dtype that every runtime divides."""
    if width_of(dtype) < 32:
        return INT32
    return INT64 if dtype == UINT32 else dtype


def in_dtype(op: Emitter, x: Value, dtype: int, to: int) -> Value:
    """Returns a value of a dtype in another one, if it is another one; a constant stays one."""
    if dtype == to:
        return x
    known = _few_elements(x)
    return op.Cast(x, to=to) if known is None else op.const(known, to)


def _few_elements(x: Value) -> numpy.ndarray[Any, Any] | None:
    """Returns the elements of a constant that is no weight."""
    sizes = x.shape
    if sizes is None or prod(size if isinstance(size, int) else FEW + 1 for size in sizes) > FEW:
        return None
    return x.constant


# ---- remainders


@downgrade("Mod", at=10)
def remainder_of_division(node: Node, op: Emitter) -> Value:
    """Writes what a - a / b * b leaves, the quotient truncated; with fmod=0 plus b where its sign is another one."""
    a, b = node.input(0), node.input(1)
    dtype = a.dtype or b.dtype or node.dtype(0)
    if is_integer(dtype):
        return _integer_remainder(op, a, b, dtype, like_divisor=not node.attr("fmod"))
    if not node.attr("fmod"):
        node.invalid("fmod is 0, which is for integers only", "set fmod to 1")
    if dtype == DOUBLE:
        op.conditional("A - floor(A / B) * B is exact in double")
    elif dtype == FLOAT:
        op.conditional("|A / B| is less than 2**28")
    wide_a, wide_b = in_dtype(op, a, dtype, DOUBLE), in_dtype(op, b, dtype, DOUBLE)
    return in_dtype(op, _float_remainder(op, wide_a, wide_b), DOUBLE, dtype)


def _integer_remainder(op: Emitter, a: Value, b: Value, dtype: int, *, like_divisor: bool) -> Value:
    carrier = _carrier(dtype)
    a, b = in_dtype(op, a, dtype, carrier), in_dtype(op, b, dtype, carrier)
    rest = op.Sub(a, op.Mul(op.Div(a, b), b))
    if like_divisor and not is_unsigned(dtype):
        signs = op.Mul(op.Cast(rest, to=FLOAT), op.Cast(b, to=FLOAT))  # of any size, but never wrong in sign
        differ = op.Less(signs, op.const(0, FLOAT))
        rest = op.Add(rest, op.Mul(op.Cast(differ, to=carrier), b))
    return in_dtype(op, rest, carrier, dtype)


def _float_remainder(op: Emitter, a: Value, b: Value) -> Value:
    """Takes the remainder of the magnitudes, with the sign of a; a itself is the remainder where b is larger, infinity
    included."""
    size, divisor = op.Abs(a), op.Abs(b)
    rest = op.Sub(size, op.Mul(op.Floor(op.Div(size, divisor)), divisor))
    return op.Where(op.Less(size, divisor), a, op.Mul(rest, op.Sign(a)))


# ---- shifts


@downgrade("BitShift", at=11)
def multiply_by_power_of_two(node: Node, op: Emitter) -> Value:
    """A shift to the left is a product, to the right a quotient; what a product has beyond the width is cut off."""
    x, count, dtype = node.input(0), node.input(1), node.dtype(0)
    width, carrier = width_of(dtype), UINT64 if dtype == UINT64 else INT64
    power = _power_of_two(op, count, width, carrier)
    wide = in_dtype(op, x, dtype, carrier)
    if node.attr("direction") == "RIGHT":
        return in_dtype(op, op.Div(wide, power), carrier, dtype)
    shifted = op.Mul(wide, power)
    if carrier == INT64:
        full = op.const(1 << width, INT64)
        shifted = op.Sub(shifted, op.Mul(op.Div(shifted, full), full))
    return in_dtype(op, shifted, carrier, dtype)


def _power_of_two(op: Emitter, count: Value, width: int, dtype: int) -> Value:
    known = _few_elements(count)
    if known is not None and (known < width).all():
        return op.const(numpy.array([1 << int(n) for n in known.flat], dtype=object).reshape(known.shape), dtype)
    return op.Gather(op.const([1 << n for n in range(width)], dtype), op.Cast(count, to=INT64), axis=0)


# ---- bit by bit


@downgrade("BitwiseNot", at=18)
def subtract_from_all_ones(node: Node, op: Emitter) -> Value:
    """-1 - x of signed integers, the largest integer less x of unsigned ones."""
    x, dtype = node.input(0), node.dtype(0)
    carrier = _carrier(dtype)
    ones = -1 if not is_unsigned(dtype) else (1 << width_of(dtype)) - 1
    return in_dtype(op, op.Sub(op.const(ones, carrier), in_dtype(op, x, dtype, carrier)), carrier, dtype)


@downgrade("BitwiseAnd", "BitwiseOr", "BitwiseXor", at=18)
def look_up_by_four_bits(node: Node, op: Emitter) -> Value:
    """Along a new last axis, both are taken apart into groups of four bits; a table tells what two groups make, and
    their sum is the result. The last group of a signed integer counts as signed."""
    a, b = node.input(0), node.input(1)
    dtype = a.dtype or b.dtype or node.dtype(0)
    combine, groups = BITWISE[node.operator], width_of(dtype) // 4
    carrier = UINT64 if dtype == UINT64 else INT64
    weights = op.const([16**k for k in range(groups)], carrier)
    first, second = (_groups(op, in_dtype(op, value, dtype, carrier), weights, dtype, carrier) for value in (a, b))
    table = [combine(i, j) for i in range(16) for j in range(16)]
    place = op.Add(op.Mul(first, op.const(16, carrier)), second)
    if not is_unsigned(dtype):
        table += [made - 16 if made > 7 else made for made in table]
        place = op.Add(place, op.const([0] * (groups - 1) + [256], carrier))
    made = op.Gather(op.const(table), in_dtype(op, place, carrier, INT64), axis=0)
    return in_dtype(op, _sum(op, made, groups, carrier), carrier, dtype)


def _sum(op: Emitter, made: Value, groups: int, dtype: int) -> Value:
    """Returns the integers that groups of four bits make; of 64 bits in two halves, as some runtimes sum int64 in
    double, and not all sum uint64."""
    if groups <= 8:
        return _weighted(op, made, [16**k for k in range(groups)])
    halves = ([16 ** (k % 8) if k // 8 == half else 0 for k in range(groups)] for half in (0, 1))
    low, high = (in_dtype(op, _weighted(op, made, half), INT64, dtype) for half in halves)
    return op.Add(op.Mul(high, op.const(16**8, dtype)), low)


def _weighted(op: Emitter, made: Value, weights: list[int]) -> Value:
    return op.at(11).ReduceSum(op.Mul(made, op.const(weights)), axes=[-1], keepdims=0)


def _groups(op: Emitter, x: Value, weights: Value, dtype: int, carrier: int) -> Value:
    """Returns the groups of four bits of integers, by division that rounds down."""
    column = op.at(11).Unsqueeze(x, axes=[-1])
    if not is_unsigned(dtype):
        column = op.Sub(column, op.Mod(column, weights))
    return op.Mod(op.Div(column, weights), op.const(16, carrier))
