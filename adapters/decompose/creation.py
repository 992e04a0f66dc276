# SPDX-License-Identifier: Apache-2.0
"""ConstantOfShape, Expand, Range.

8: Expand repeats a value to a shape with which it broadcasts.
9: ConstantOfShape fills a shape with one element.
11: Range counts from a start to a limit.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, INT64, is_integer
from onnx_convert.adapters.lib.shapes import at_least_zero, count_up, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

WRITTEN: Final = 1024  # elements that are written as a constant

# ---- ConstantOfShape


@downgrade("ConstantOfShape", at=9)
def expand_one_element(node: Node, op: Emitter) -> Value:
    """The element is repeated to the shape; a few of them are written down."""
    element, dtype = numpy.zeros(()), FLOAT
    if node.has("value"):
        element, dtype = node.tensor("value").reshape(()), node.attr("value").data_type
    known = node.input(0).constant
    if known is not None and numpy.prod(known) <= WRITTEN:
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
        counts = [_count(size, wanted) for size, wanted in zip(own, target, strict=True)]
        fixed = [count for count in counts if count is not None]
        if len(fixed) == len(counts):
            return raised if all(count == 1 for count in fixed) else op.Tile(raised, op.const(fixed))
    if length < x.rank:
        shape = op.at(4).Concat(op.const([1] * (x.rank - length)), shape, axis=0)
    return op.Tile(raised, _counts(op, op.Shape(raised), shape))


def _count(size: int | str | None, wanted: int) -> int | None:
    """How often an axis is repeated, None if only the run tells."""
    if wanted == 1 or (isinstance(size, int) and size != 1):
        return 1
    return wanted if size == 1 else None


def _tile_whatever_the_ranks(op: Emitter, x: Value, shape: Value) -> Value:
    """The same with both lengths found at run time."""
    own = op.Shape(x)
    lengths = op.Shape(own), op.Shape(shape)
    missing, spare = (at_least_zero(op, op.Sub(*pair)) for pair in (lengths[::-1], lengths))
    own, shape = (
        op.at(4).Concat(op.Tile(op.const([1]), ones), sizes, axis=0) for ones, sizes in ((missing, own), (spare, shape))
    )
    return op.Tile(reshape(op, x, own), _counts(op, own, shape))


def _counts(op: Emitter, own: Value, wanted: Value) -> Value:
    """The size that is wanted where the own one is 1, elsewhere 1."""
    single = op.Cast(op.at(7).Equal(own, op.const([1])), to=INT64)
    return op.at(7).Add(op.at(7).Mul(op.at(7).Sub(wanted, op.const([1])), single), op.const([1]))


# ---- Range


@downgrade("Range", at=11)
def count_and_scale(node: Node, op: Emitter) -> Value:
    """Each element is the start plus as many steps as its index; a few constant ones are written down."""
    start, limit, delta = (node.input(index) for index in range(3))
    known = [value.constant for value in (start, limit, delta)]
    dtype = start.dtype or limit.dtype or delta.dtype or node.dtype(0)
    if not is_integer(dtype):
        op.equivalent("how a step is rounded is not specified")
        return _count_floats(op, start, limit, delta, dtype)
    if all(value is not None for value in known):
        first, last, step = (int(value.item()) for value in known if value is not None)
        if step and ceil((last - first) / step) <= WRITTEN:
            return op.const(range(first, last, step), dtype)
    elements = _count_integers(op, *(_wide(op, value) for value in (start, limit, delta)))
    return elements if dtype == INT64 else op.Cast(elements, to=dtype)


def _count_integers(op: Emitter, start: Value, limit: Value, delta: Value) -> Value:
    """int64 alone: the number of steps is that of a division which rounds up, exact for any size."""
    step = delta.constant.item() if delta.constant is not None else None
    distance = limit if _is(start, 0) else op.at(7).Sub(limit, start)
    if step is None:
        sign = op.at(7).Less(op.Cast(delta, to=FLOAT), op.const(0, FLOAT))
        sign = op.at(7).Sub(op.const(1), op.at(7).Mul(op.Cast(sign, to=INT64), op.const(2)))
        distance, size = op.at(7).Mul(distance, sign), op.at(7).Mul(delta, sign)
        count = op.at(7).Sub(op.at(7).Add(distance, size), op.const(1))
        count = op.at(7).Div(at_least_zero(op, count), size)
    else:
        distance = op.at(7).Mul(distance, op.const(-1)) if step < 0 else distance
        if abs(step) != 1:
            distance = op.at(7).Add(distance, op.const(abs(step) - 1))
        count = at_least_zero(op, distance)
        count = count if abs(step) == 1 else op.at(7).Div(count, op.const(abs(step)))
    elements = count_up(op, _vector(op, count))
    elements = elements if step == 1 else op.at(7).Mul(elements, delta)
    return elements if _is(start, 0) else op.at(7).Add(elements, start)


def _count_floats(op: Emitter, start: Value, limit: Value, delta: Value, dtype: int) -> Value:
    """The number of steps is found in double."""
    distance, step = (
        value if dtype == DOUBLE else op.Cast(value, to=DOUBLE) for value in (op.at(7).Sub(limit, start), delta)
    )
    count = op.Cast(op.at(6).Ceil(op.at(7).Div(distance, step)), to=INT64)
    elements = op.Cast(count_up(op, _vector(op, at_least_zero(op, count))), to=dtype)
    return op.at(7).Add(op.at(7).Mul(elements, delta), start)


def _wide(op: Emitter, value: Value) -> Value:
    return value if value.dtype == INT64 else op.Cast(value, to=INT64)


def _is(value: Value, number: int) -> bool:
    return value.constant is not None and bool((value.constant == number).all())


def _vector(op: Emitter, scalar: Value) -> Value:
    """A scalar, or a vector of one element, as such a vector."""
    return scalar if scalar.rank == 1 else op.at(5).Reshape(scalar, op.const([1]))
