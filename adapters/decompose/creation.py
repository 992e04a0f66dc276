# SPDX-License-Identifier: Apache-2.0
"""ConstantOfShape, Expand, Range.

8: Expand repeats a value to a shape with which it broadcasts.
9: ConstantOfShape fills a shape with one element.
11: Range counts from a start to a limit.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, INT64, cast, is_integer
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import at_least_zero, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value
    from onnx_convert.adapters.lib.numbers import Number

WRITTEN: Final = 1024  # elements that are written as a constant
_SMALL: Final = 2**20  # steps below that overflow nothing before there are more elements than fit into any memory
_EXACT: Final = 2**53  # integers that double holds

# ---- ConstantOfShape


@downgrade("ConstantOfShape", at=9)
def expand_one_element(node: Node, op: Emitter) -> Value:
    """The element is repeated to the shape; a few of them are written down."""
    element, dtype = numpy.zeros(()), FLOAT
    if node.has("value"):
        element, dtype = node.tensor("value").reshape(()), node.attr("value").data_type
    known = node.input(0).constant
    if known is not None and prod(known.tolist()) <= WRITTEN:
        return op.const(numpy.broadcast_to(element, known.tolist()), dtype)
    return op.Expand(op.const(element, dtype), node.input(0))


# ---- Expand


@downgrade("Expand", at=8)
def tile_axes_of_length_one(node: Node, op: Emitter) -> Value:
    """Each axis of length 1 is repeated as often as the shape says; the shorter of the two shapes gets leading ones."""
    x, shape = node.input(0), node.input(1)
    known = shape.constant
    length = len(known) if known is not None else shape.shape[0] if shape.shape else None
    if x.rank is None or not isinstance(length, int):
        return _tile_whatever_the_ranks(op, x, shape)
    missing = max(0, length - x.rank)
    own = (1,) * missing + (x.shape or ())
    raised = op.at(10).Unsqueeze(x, axes=list(range(missing))) if missing else x
    if known is not None:
        target = [1] * (x.rank - length) + known.tolist()
        counts = [_repeats(size, wanted) for size, wanted in zip(own, target, strict=True)]
        fixed = [count for count in counts if count is not None]
        if len(fixed) == len(counts):
            return raised if all(count == 1 for count in fixed) else op.Tile(raised, op.const(fixed))
    if length < x.rank:
        shape = op.at(4).Concat(op.const([1] * (x.rank - length)), shape, axis=0)
    return op.Tile(raised, _counts(op, op.Shape(raised), shape))


def _repeats(size: int | str | None, wanted: int) -> int | None:
    """Returns how often an axis is repeated, None if only the run tells."""
    if wanted == 1 or (isinstance(size, int) and size != 1):
        return 1
    return wanted if size == 1 else None


def _tile_whatever_the_ranks(op: Emitter, x: Value, shape: Value) -> Value:
    """Writes the same with both lengths found at run time."""
    own = op.Shape(x)
    lengths = op.Shape(own), op.Shape(shape)
    missing, spare = (at_least_zero(op, op.Sub(*pair)) for pair in (lengths[::-1], lengths))
    own, shape = (
        op.at(4).Concat(op.Tile(op.const([1]), ones), sizes, axis=0) for ones, sizes in ((missing, own), (spare, shape))
    )
    return op.Tile(reshape(op, x, own), _counts(op, own, shape))


def _counts(op: Emitter, own: Value, wanted: Value) -> Value:
    """Returns the size that is wanted where the own one is 1, elsewhere 1."""
    single = op.Cast(op.at(7).Equal(own, op.const([1])), to=INT64)
    return op.at(7).Add(op.at(7).Mul(op.at(7).Sub(wanted, op.const([1])), single), op.const([1]))


# ---- Range


@downgrade("Range", at=11)
def count_and_scale(node: Node, op: Emitter) -> Value:
    """Adds to the start as many steps as the index of each element says; writes a few constant ones down."""
    given = [node.input(index) for index in range(3)]
    known = [value.constant for value in given]
    dtype = next((value.dtype for value in given if value.dtype), 0) or node.dtype(0)
    numbers = Numbers(op, INT64 if is_integer(dtype) else dtype)
    if is_integer(dtype) and all(value is not None for value in known):
        low, high, by = (int(value.item()) for value in known if value is not None)
        if by and -((low - high) // by) <= WRITTEN:
            return op.const(range(low, high, by), dtype)
    if not is_integer(dtype):
        op.equivalent("how a step is rounded is not specified")
    start, limit, step = (numbers.of(value) for value in given)
    small = step.known is not None and abs(step.number) < _SMALL
    count = _exact_count(start, limit, step) if dtype == INT64 and not small else _count(start, limit, step, dtype)
    begin = start if is_integer(dtype) else numbers.to(DOUBLE).of(start)  # where no product overflows
    return cast(op, begin.range(numbers.to(INT64).one(count), step).value, dtype)


def _count(start: Number, limit: Number, step: Number, dtype: int) -> Value:
    """Writes how many elements there are, as int64: found in double, which holds all but very large integers. The
    difference of those is found in int64."""
    reals = start.numbers.to(DOUBLE)  # a difference of floats is exact there, or very nearly
    steps = (reals.of(limit) - start) / step
    large = dtype == INT64 and (start.known is None or abs(start.number) >= _EXACT)
    if large:
        steps, rounded = reals.of(limit - start) / step, steps
    steps = steps if is_integer(dtype) and step.number in (1, -1) else steps.ceil()
    if large:
        steps = steps * (1 - rounded.is_negative())  # where the difference of opposite signs does not fit
    return steps.at_least(0).in_dtype(INT64)


def _exact_count(start: Number, limit: Number, step: Number) -> Value:
    """Writes how many elements there are, in int64 alone: from each end what is left over when it is divided by the
    step, with the sign of the step, so that nothing overflows whatever the three numbers are."""
    numbers = start.numbers
    back = step.is_negative().whole()
    sign = 1 - back * 2

    def parts(end: Number) -> tuple[Number, Number]:
        whole = numbers.of(numbers.node("Div", end.value, step.value))
        left = end - whole * step
        short = (left * sign).is_negative().whole()
        return whole - short, left + short * step

    (last, above), (first, below) = parts(limit), parts(start)
    count = last - first + ((below - above) * sign).is_negative().whole()
    # By steps of 1 the difference itself may overflow, but only if it is negative: there is no memory for others.
    reals = numbers.to(DOUBLE)
    ahead = (reals.of(limit) - start) * sign
    return (count * (1 - ahead.is_negative())).at_least(0).value
