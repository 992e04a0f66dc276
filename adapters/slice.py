# SPDX-License-Identifier: Apache-2.0
"""Slice.

10: `starts`, `ends`, `axes` are inputs, and `steps` is new; below, attributes.
11: axes may be negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.shapes import (
    END,
    INT64,
    collapse,
    count_in_row,
    known_size,
    non_negative,
    part,
    restore,
    size_along,
)
from onnx_convert.registry import downgrade, upgrade
from onnx_convert.types import dtype_number

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value

_DOUBLE: Final = dtype_number("double")
_MOST: Final = 1 << 20  # indices that are written down
_FROM, _TO, _AXES, _STEPS = range(1, 5)


@upgrade("Slice", at=10)
def bounds_to_inputs(node: Node, op: Emitter) -> Value:
    """The attributes become constants; steps are 1."""
    names = ("starts", "ends", "axes")
    return op.same(node.input(0), *(op.attribute_as_input(name) for name in names), drop=names)


@downgrade("Slice", at=11)
def slice_positive_axes(node: Node, op: Emitter) -> Value:
    """Negative axes count from the end of a known rank; of an unknown one, all before them becomes one dimension."""
    x, axes = node.input(0), node.optional_input(_AXES)
    known = axes.constant if axes is not None else None
    if axes is None or (known is not None and (known >= 0).all()):
        return op.same()
    starts, ends, steps = node.input(_FROM), node.input(_TO), node.optional_input(_STEPS)
    if known is None or (x.rank is None and (known >= 0).any()):
        rank = op.Shape(op.Shape(x))
        dtype = node.dtype(_AXES)
        positive = non_negative(op, axes, rank if dtype == INT64 else op.Cast(rank, to=dtype))
        return op.same(x, starts, ends, positive, steps)
    if x.rank is not None:
        positive = op.const([node.axis(axis, x.rank) for axis in known.tolist()], node.dtype(_AXES))
        return op.same(x, starts, ends, positive, steps)
    tail = int(-known.min())
    flat, before = collapse(op, x, tail)
    return restore(op, op.same(flat, starts, ends, op.const(known + tail + 1, node.dtype(_AXES)), steps), before)


@downgrade("Slice", at=10)
def bounds_to_attributes(node: Node, op: Emitter) -> Value:
    """Constant bounds with steps of 1 become attributes; others choose what stays by its indices, axis by axis."""
    x, starts, ends = node.input(0), node.input(_FROM).constant, node.input(_TO).constant
    axes = node.constant(_AXES).tolist() if node.optional_input(_AXES) is not None else None
    steps = node.optional_input(_STEPS)
    ones = steps is None or (steps.constant is not None and (steps.constant == 1).all())
    if ones and starts is not None and ends is not None:
        return op.same(x, starts=starts.tolist(), ends=ends.tolist(), axes=axes)
    for index, axis in enumerate(range(_count(node)) if axes is None else axes):
        start, end, step = (_element(op, node.optional_input(which), index) for which in (_FROM, _TO, _STEPS))
        if (start, step) == (0, 1) and isinstance(end, int) and end >= END:
            continue
        positive = axis if axis >= 0 else axis + node.rank(0)
        x = op.Gather(x, _indices(op, node.input(0), positive, start, end, step), axis=positive)
    return x


def _count(node: Node) -> int:
    """How many bounds there are, where no axes are named: as many as the input has axes, as the text says, though
    runtimes take fewer."""
    given = [node.optional_input(index) for index in (_FROM, _TO, _STEPS)]
    shapes = [bounds.shape for bounds in given if bounds is not None]
    known = [shape[0] for shape in shapes if shape and isinstance(shape[0], int)]
    if known:
        return known[0]
    rank = node.input(0).rank
    if rank is None:
        node.refuse("neither axes nor the number of starts is known", "name the axes", unknown=True)
    return rank


def _element(op: Emitter, bounds: Value | None, index: int) -> int | Value:
    """One of the bounds: a number if it is constant, else an int64 value of one element. Absent steps are 1."""
    if bounds is None:
        return 1
    if bounds.constant is not None:
        return int(bounds.constant[index])
    one = bounds if bounds.shape == (1,) else part(op, bounds, index, index + 1)
    return one if bounds.dtype == INT64 else op.Cast(one, to=INT64)


def _indices(op: Emitter, x: Value, axis: int, start: int | Value, end: int | Value, step: int | Value) -> Value:
    """The indices that a slice of one axis takes, clamped as the text of Slice says."""
    size = known_size(x, axis)
    few = size if size is not None and size <= _MOST else None
    if few is not None and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return op.const(_taken(few, start, end, step))
    length = size_along(op, x, axis)
    sizes = op.const([size], _DOUBLE) if size is not None else op.Cast(length, to=_DOUBLE)
    backwards: Value | None = None  # 1.0 where the step is negative
    if not isinstance(step, int):
        backwards = op.Cast(op.at(7).Less(op.Cast(step, to=_DOUBLE), op.const([0], _DOUBLE)), to=_DOUBLE)
    elif step < 0:
        backwards = op.const([1], _DOUBLE)
    zero = op.const([0], _DOUBLE)
    low = zero if backwards is None else op.at(7).Sub(zero, backwards)
    high = sizes if backwards is None else op.at(7).Sub(sizes, backwards)
    first: Value | None = None
    if start != 0 or backwards is not None:
        first = op.at(8).Max(op.at(8).Min(_from_the_beginning(op, start, length), high), zero)
    last = sizes
    if backwards is not None or not isinstance(end, int) or end < END:
        last = op.at(8).Max(op.at(8).Min(_from_the_beginning(op, end, length), high), low)
    count = last if first is None else op.at(7).Sub(last, first)
    if step != 1:
        count = op.Ceil(
            op.at(7).Div(count, op.const([step], _DOUBLE) if isinstance(step, int) else op.Cast(step, to=_DOUBLE))
        )
    if first is not None:
        count = op.at(8).Max(count if backwards is None else op.at(8).Min(count, sizes), zero)
    taken = count_in_row(op, op.Cast(count, to=INT64))
    if step != 1:
        taken = op.at(7).Mul(taken, op.const([step]) if isinstance(step, int) else step)
    taken = op.at(10).Squeeze(taken, axes=[0])
    return taken if first is None else op.at(7).Add(taken, op.Cast(first, to=INT64))


def _from_the_beginning(op: Emitter, bound: int | Value, length: Value) -> Value:
    """A bound that does not count from the end, as a double."""
    if not isinstance(bound, int):
        return op.Cast(non_negative(op, bound, length), to=_DOUBLE)
    if bound >= 0:
        return op.const([bound], _DOUBLE)
    return op.Cast(op.at(7).Add(length, op.const([bound])), to=_DOUBLE)


def _taken(size: int, start: int, end: int, step: int) -> list[int]:
    """The indices of a slice whose numbers are all known. Unlike in Python, no start lies before the first element."""
    low, high = (-1, size - 1) if step < 0 else (0, size)
    first = max(min(start + size * (start < 0), high), 0)
    last = max(min(end + size * (end < 0), high), low)
    return list(range(first, last, step)) if size else []
