# SPDX-License-Identifier: Apache-2.0
"""Unique, which is there from 11 on, of numbers, or of rows of them: they are put in order, and neighbours compared."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, dtype_name
from onnx_convert.adapters.lib.bodies import tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, DOUBLE, FLOAT, INT64, UINT64, cast
from onnx_convert.adapters.lib.indices import flat, places, scalar
from onnx_convert.adapters.lib.shapes import are_zero, known_size, part, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

# TopK knows no integers below 11, and runtimes know it for float only. So wide integers become digits, which a float
# holds; the first has the sign of the integer, and those of a negative one are negative.
_DIGITS: Final = {"int32": 2, "uint32": 2, "int64": 3, "uint64": 3}
_BITS: Final = 22
_FLOATS: Final = ("float16", "float", "double")
_COMPARED_AS_THEY_ARE: Final = ("bool", "int32", "int64")


@downgrade("Unique", at=11)
def compare_neighbours_in_order(node: Node, op: Emitter) -> tuple[Value | None, ...]:
    """The order keeps equal elements as they are, so the first of each group is the first in the input."""
    x, axis, dtype = node.input(0), node.attr("axis"), dtype_name(node.dtype(0))
    if dtype == "string":
        node.refuse("its elements are strings, which nothing below opset 11 puts in order", "go no lower than opset 11")
    if axis is None or x.rank == 1:
        axis, x = 0, flat(op, x)
        elements, digits = x, _digits(op, x, dtype)
        origin = _sorted(op, digits)
    else:
        op.large("a Loop that sorts by one element of all slices after the other")
        axis = axis + node.rank(0) if axis < 0 else axis
        elements = _rows(node, op, axis)
        digits = _digits(op, elements, dtype)
        origin = _sorted_rows(op, digits)
    length, numbers = size_at(op, op.Shape(elements), 0), places(op, elements, 0)
    integers = dtype in _COMPARED_AS_THEY_ARE
    told_apart = [elements] if integers else digits
    changes = reduce(op.Or, [_changes(op, op.Gather(value, origin), floats=not integers) for value in told_apart])
    if elements is not x:
        if dtype in _FLOATS:  # rows with NaN are equal to none, as numpy has it; the first one counts as the first
            nan = op.Cast(op.Gather(digits[1], origin), to=BOOL)
            changes = op.Or(changes, op.And(nan, op.Unsqueeze(op.Cast(numbers, to=BOOL), axes=[1])))
        changes = op.Cast(op.ReduceSum(op.Cast(changes, to=FLOAT), axes=[1], keepdims=0), to=BOOL)
    starts = op.Squeeze(op.NonZero(op.Or(changes, are_zero(op, numbers))), axes=[0])
    first, group, counts = op.Gather(origin, starts), None, None
    if node.is_read(3):
        counts = op.Sub(op.Concat(part(op, starts, 1), length, axis=0), starts)
    in_order = node.attr("sorted")
    if node.is_read(2) or not in_order:
        group = op.at(11).CumSum(op.Cast(changes, to=INT64), op.const(0))
        group = op.Scatter(group, origin, group, axis=0)
    if group is not None and not in_order:  # in the order of their first occurrence
        marks = op.Scatter(op.Mul(numbers, op.const([0])), first, op.Add(op.Mul(first, op.const([0])), op.const([1])))
        first = op.Squeeze(op.NonZero(marks), axes=[0])
        place = op.Gather(group, first)
        counts = counts and op.Gather(counts, place)
        group = op.Gather(op.Scatter(place, place, places(op, place, 0), axis=0), group)
    return op.Gather(x, first, axis=axis), first, group, counts


def _rows(node: Node, op: Emitter, axis: int) -> Value:
    """Returns the slices along an axis, flat."""
    x = node.input(0)
    if axis:
        others = [other for other in range(node.rank(0)) if other != axis]
        x = op.Transpose(x, perm=[axis, *others])
    return op.Flatten(x, axis=1)


def _changes(op: Emitter, ordered: Value, *, floats: bool) -> Value:
    """Writes which elements differ from what is before them; the first does not. Floats, none of which is NaN here,
    have an order at every opset, but are not compared for equality."""
    before = op.Concat(part(op, ordered, 0, 1), part(op, ordered, 0, -1), axis=0)
    if floats:
        return op.Or(op.Less(ordered, before), op.Greater(ordered, before))
    return op.Not(op.at(11).Equal(ordered, before))


# ---- putting in order


def _digits(op: Emitter, x: Value, dtype: str) -> list[Value]:
    """Writes what to sort by, the last first: values that TopK knows. NaN comes behind all numbers, as one element."""
    if dtype in _FLOATS:
        nan, x = op.IsNaN(x), op.Cast(x, to=FLOAT) if dtype == "float16" else x
        return [op.Where(nan, op.const(0, DOUBLE if dtype == "double" else FLOAT), x), op.Cast(nan, to=FLOAT)]
    if dtype not in _DIGITS:
        return [op.Cast(x, to=FLOAT)]
    wide = UINT64 if dtype == "uint64" else INT64
    digits, rest = [], cast(op, x, wide)
    for _ in range(_DIGITS[dtype] - 1):
        base = op.const(1 << _BITS, wide)
        higher = op.Div(rest, base)
        digits.append(op.Cast(op.Sub(rest, op.Mul(higher, base)), to=FLOAT))
        rest = higher
    return [*digits, op.Cast(rest, to=FLOAT)]


def _sorted(op: Emitter, digits: list[Value]) -> Value:
    """Returns the places of the elements of a vector, from the smallest to the largest."""
    length = op.Shape(digits[0])
    order = _smallest_first(op, digits[0], length)
    for digit in digits[1:]:
        order = op.Gather(order, _smallest_first(op, op.Gather(digit, order), length))
    return order


def _smallest_first(op: Emitter, x: Value, length: Value) -> Value:
    return op.node("TopK", op.Neg(x), length, outputs=2, axis=0)[1]


def _sorted_rows(op: Emitter, digits: list[Value]) -> Value:
    """Returns the places of rows, in the order that their first elements give, then their second ones. Each step sorts
    by one element, the last first, and keeps the order of rows in which that is the same."""
    columns = [op.Transpose(digit, perm=[1, 0]) for digit in digits]
    shape = op.Shape(columns[0])
    last, length = op.Sub(size_at(op, shape, 0), op.const([1])), size_at(op, shape, 1)

    def step(inner: Emitter, number: Value, going: Value, order: Value) -> tuple[Value, ...]:
        place = inner.Sub(last, number)
        for column in columns:
            keys = inner.Gather(inner.Squeeze(inner.Gather(column, place, axis=0), axes=[0]), order)
            order = inner.Gather(order, _smallest_first(inner, keys, length))
        return going, order

    body = op.graph("column", (INT64, BOOL, tensor_type(INT64, known_size(columns[0], 1))), step)
    count = scalar(op, size_at(op, shape, 0))
    return op.node("Loop", count, op.const(True, BOOL), places(op, columns[0], 1), body=body)[0]
