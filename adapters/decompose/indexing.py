# SPDX-License-Identifier: Apache-2.0
"""Compress, EyeLike, NonZero, OneHot, ReverseSequence, Trilu.

9: Compress takes the slices of an axis for which a condition holds, EyeLike makes a diagonal of ones, NonZero finds the
elements that are not 0, and OneHot makes a vector of each class.
10: ReverseSequence turns the beginning of each sequence round.
14: Trilu keeps the triangle on one side of a diagonal.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, DOUBLE, FLOAT, INT64, STRING, cast
from onnx_convert.adapters.lib.indices import (
    WRITTEN,
    at_least_one,
    column,
    fixed,
    flat,
    from_the_start,
    into,
    is_negative,
    loop,
    places,
    scalar,
    strides,
    vector,
)
from onnx_convert.adapters.lib.shapes import END, count_up, known_size, part, product, reshape, size_along, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_EXACT_IN_FLOAT: Final = 2**23  # sums of two integers below this


@downgrade("Compress", at=9)
def gather_what_is_chosen(node: Node, op: Emitter) -> Value:
    """The places where the condition holds are gathered; without an axis, from the flat input."""
    x, axis = node.input(0), node.attr("axis")
    chosen = op.at(10).Squeeze(op.at(9).NonZero(node.input(1)), axes=[0])
    return op.Gather(flat(op, x) if axis is None else x, chosen, axis=axis or 0)


@downgrade("EyeLike", at=9)
def compare_row_and_column(node: Node, op: Emitter) -> Value:
    """1 where the column is the row and k more; a small matrix is written down."""
    x, k, sizes = node.input(0), node.attr("k"), fixed(node.input(0).shape)
    dtype = node.attr("dtype") or node.dtype(0)
    if sizes is not None and prod(sizes) <= WRITTEN:
        return op.const(numpy.eye(sizes[0], sizes[1], k=k), dtype)
    rows = places(op, x, 0)
    rows = op.at(10).Unsqueeze(op.Add(rows, op.const(k)) if k else rows, axes=[1])
    equal = op.Equal(rows, places(op, x, 1))
    return equal if dtype == BOOL else op.Cast(equal, to=dtype)


# ---- NonZero


@downgrade("NonZero", at=9)
def find_one_by_one(node: Node, op: Emitter) -> Value:
    """A Loop finds the flat places. The earlier an element, the larger its mark, so the next one to find is the one
    with the largest mark below that of the last."""
    x = node.input(0)
    elements = flat(op, x)
    mask = elements if x.dtype == BOOL else op.Cast(elements, to=BOOL)
    length = op.Shape(elements)
    marks = op.at(7).Sub(op.Cast(length, to=DOUBLE), op.Cast(_count(op, elements, length), to=DOUBLE))
    marks = op.at(7).Mul(op.Cast(mask, to=DOUBLE), marks)

    def step(inner: Emitter, number: Value, last: Value) -> tuple[Value, Value]:
        rest = inner.Cast(inner.Less(marks, last), to=DOUBLE)
        found = inner.ReduceMax(inner.Mul(marks, rest), axes=[0], keepdims=1)
        return found, inner.Identity(found)

    count = op.at(10).ReduceSum(op.Cast(mask, to=INT64), axes=[0], keepdims=1)
    beyond = op.at(7).Add(op.Cast(length, to=DOUBLE), op.const([1], DOUBLE))
    found = loop(op, count, beyond, step)
    return _coordinates(op, op.at(7).Sub(length, op.Cast(found, to=INT64)), x)


def _count(op: Emitter, elements: Value, length: Value) -> Value:
    """Returns the places of a vector. (`count_up` needs NonZero.)"""
    size = elements.shape[0] if elements.shape is not None else None
    if isinstance(size, int):
        return op.const(range(size))

    def step(inner: Emitter, number: Value, unused: Value) -> tuple[Value, Value]:
        return unused, inner.Reshape(number, inner.const([1]))

    return loop(op, length, op.const([0], FLOAT), step)


def _coordinates(op: Emitter, found: Value, x: Value) -> Value:
    """Returns a row of indices for each axis, for flat places."""
    rows = op.at(10).Unsqueeze(found, axes=[0])
    if x.rank == 1:
        return rows
    sizes = op.Shape(x)
    whole = op.at(7).Div(rows, op.at(10).Unsqueeze(strides(op, sizes), axes=[1]))
    sizes = op.at(10).Unsqueeze(at_least_one(op, sizes), axes=[1])
    return op.at(7).Sub(whole, op.at(7).Mul(op.at(7).Div(whole, sizes), sizes))


# ---- OneHot


@downgrade("OneHot", at=9)
def compare_with_every_class(node: Node, op: Emitter) -> Value:
    """Each index is compared with all numbers below the depth, and the outcome takes one of the two values."""
    indices, depth, values, axis = node.input(0), node.input(1).constant, node.input(2), node.attr("axis")
    size = op.const([int(depth.item())]) if depth is not None else vector(op, cast(op, node.input(1), INT64))
    classes = op.const(range(int(depth.item()))) if depth is not None else count_up(op, size)
    named = from_the_start(op, indices, size)
    if indices.rank is None:
        shape = op.Shape(indices)
        before, after = (part(op, shape, 0, axis), [part(op, shape, axis)]) if axis >= 0 else (shape, [])
        rest = product(op, after[0]) if after else op.const([1])
        named = reshape(op, named, op.at(4).Concat(product(op, before), op.const([1]), rest, axis=0))
        hot = op.Cast(op.at(7).Equal(named, op.at(10).Unsqueeze(classes, axes=[1])), to=INT64)
        return reshape(op, op.Gather(values, hot), op.at(4).Concat(before, size, *after, axis=0))
    axis = indices.rank if axis == -1 else axis
    trailing = list(range(1, indices.rank - axis + 1))
    classes = op.at(10).Unsqueeze(classes, axes=trailing) if trailing else classes
    hot = op.at(7).Equal(op.at(10).Unsqueeze(named, axes=[axis]), classes)
    return op.Gather(values, op.Cast(hot, to=INT64))


# ---- ReverseSequence


@downgrade("ReverseSequence", at=10)
def gather_backwards(node: Node, op: Emitter) -> Value:
    """Time and batch are made one axis, along which each element is gathered from where it was."""
    x, lengths, time = node.input(0), cast(op, node.input(1), INT64), node.attr("time_axis")
    steps, members = places(op, x, time), places(op, x, 1 - time)
    known = lengths.constant
    last = op.at(7).Sub(lengths, op.const([1])) if known is None else op.const(known - 1)
    if time == 0:
        steps = column(op, steps)
    else:
        members, last = column(op, members), column(op, last)
    left = op.at(7).Sub(last, steps)  # as many steps follow, fewer than 0 if this is none of the sequence
    moved = op.at(7).Sub(left, steps)
    outside = op.Cast(is_negative(op, left), to=INT64)
    steps = op.at(7).Add(steps, op.at(7).Sub(moved, op.at(7).Mul(moved, outside)))
    outer, inner = (steps, members) if time == 0 else (members, steps)
    row = size_along(op, x, 1)
    index = op.at(7).Add(op.at(7).Mul(outer, row), inner)
    return op.Gather(_merged(op, x, row), index)


def _merged(op: Emitter, x: Value, row: Value) -> Value:
    """Returns a value with its first two axes made one."""

    def measured() -> Value:
        shape = op.Shape(x)
        rows = op.at(7).Mul(part(op, shape, 0, 1), row)
        return op.at(4).Concat(rows, part(op, shape, 2), axis=0)

    return into(op, x, (None, *x.shape[2:]) if x.shape is not None else None, measured)


# ---- Trilu


@downgrade("Trilu", at=14)
def choose_by_row_and_column(node: Node, op: Emitter) -> Value:
    """0 takes the place of what lies beyond the diagonal; a small mask is written down."""
    if node.dtype(0) == STRING:
        node.refuse("it is not specified what takes the place of a string", "go no lower than opset 14")
    x, k, upper = node.input(0), node.optional_input(1), node.attr("upper")
    sizes = fixed(x.shape[-2:] if x.shape is not None else None)

    def less(one: Value, other: Value) -> Value:
        return op.Less(one, other) if upper else op.Less(other, one)

    if k is not None and k.constant is None:  # in double, where nothing overflows, and no rounding reaches the matrix
        rows, columns = (_range(op, x, axis) for axis in (-2, -1))
        diagonal = op.Cast(op.Sub(columns, op.Unsqueeze(rows, op.const([1]))), to=DOUBLE)
        return _without(node, op, less(diagonal, op.Cast(k, to=DOUBLE)))
    shift = 0 if k is None or k.constant is None else int(k.constant.item())
    if sizes is None:
        shift = min(max(shift, -END), END)  # beyond any matrix
        rows, columns = (_range(op, x, axis) for axis in (-2, -1))
        rows = op.Unsqueeze(rows, op.const([1]))
        return _without(node, op, less(columns, op.Add(rows, op.const(shift)) if shift else rows))
    first = numpy.arange(sizes[0])[:, None] + min(max(shift, -sizes[0]), sizes[1])
    second = numpy.arange(sizes[1])
    if prod(sizes) <= WRITTEN:
        return _without(node, op, op.const(second < first if upper else second > first, BOOL))
    dtype = FLOAT if max(sizes) < _EXACT_IN_FLOAT else DOUBLE
    return _without(node, op, less(op.const(second, dtype), op.const(first, dtype)))


def _without(node: Node, op: Emitter, beyond: Value) -> Value:
    """Returns the input with 0 where it lies beyond the diagonal. Many runtimes have no Where of booleans."""
    dtype = node.dtype(0)
    if dtype != BOOL:
        return op.Where(beyond, op.const(0, dtype), node.input(0))
    known = beyond.constant
    return op.And(node.input(0), op.Not(beyond) if known is None else op.const(~known, BOOL))


def _range(op: Emitter, x: Value, axis: int) -> Value:
    """Returns the same as `places`, by Range, which more runtimes like than NonZero."""
    size = known_size(x, axis)
    if size is not None:
        return op.const(range(size))
    return op.Range(op.const(0), scalar(op, size_at(op, op.Shape(x), axis)), op.const(1))
