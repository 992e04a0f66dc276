# SPDX-License-Identifier: Apache-2.0
"""Pad.

2: `pads` is the attribute; below, `paddings`, which may not be negative.
11: pads and value are inputs, the value of the data's dtype; below, attributes, the value float32. There are integers.
13: there are booleans, strings and complex numbers.
18: `axes` names the axes that the pads are for; below, they are for all.
19: there is the mode `wrap`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import (
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FIRST_FLOATS,
    INT64,
    STRING,
    cast,
    float32_of,
    number_like,
)
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import END, collapse, non_negative, restore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Value

_PADS, _VALUE, _AXES = range(1, 4)
_CONSTANT: Final = "constant"
_FROM_13: Final = (BOOL, STRING, COMPLEX64, COMPLEX128)


@upgrade("Pad", at=2)
def paddings_to_pads(node: Node, op: Emitter) -> Value:
    """The attribute gets its new name."""
    return op.same(drop=("paddings",), pads=node.attribute("paddings"))


@downgrade("Pad", at=2)
def pads_to_paddings(node: Node, op: Emitter) -> Value:
    """The attribute gets its old name. Where it is negative, the input is cut before."""
    pads = node.attr("pads")
    x = _cut(op, node.input(0), range(len(pads) // 2), pads)
    return op.same(x, drop=("pads",), paddings=[max(pad, 0) for pad in pads])


@upgrade("Pad", at=11)
def pads_to_input(node: Node, op: Emitter) -> Value:
    """The attributes become constants, the value only where it counts and is not 0."""
    x, value = node.input(0), node.attr("value")
    default = (value == 0 and math.copysign(1, value) > 0) or node.attr("mode") != _CONSTANT
    pads = op.attribute_as_input("pads")
    return op.same(x, pads, None if default else number_like(op, value, x), drop=("pads", "value"))


@downgrade("Pad", at=11)
def pads_to_attribute(node: Node, op: Emitter) -> Value:
    """Constant pads of floats become the attribute if float32 holds the value. Otherwise each axis is padded by blocks
    of the value, or by indices that repeat what is there."""
    x, pads, value = node.input(0), node.input(_PADS).constant, node.optional_input(_VALUE)
    filled = node.attr("mode") == _CONSTANT and value is not None
    dtype = x.dtype or (value.dtype if value is not None else None)
    number = float32_of(value) if filled and value is not None else 0.0
    if pads is None or number is None or dtype not in (*FIRST_FLOATS, None):
        return _axis_by_axis(node, op)
    return op.same(x, pads=pads.tolist(), value=number if filled else None)


@downgrade("Pad", at=13)
def pad_what_is_no_number(node: Node, op: Emitter) -> Value:
    """Booleans, strings and complex numbers are padded axis by axis."""
    return _axis_by_axis(node, op) if node.input(0).dtype in _FROM_13 else op.same()


@downgrade("Pad", at=18)
def pads_of_all_axes(node: Node, op: Emitter) -> Value:
    """The pads are spread over all axes. If axes count from the end of an unknown rank, what is before them becomes one
    dimension."""
    x, pads, value = node.input(0), node.input(_PADS), node.optional_input(_VALUE)
    if node.optional_input(_AXES) is None:
        return op.same(x, pads, value)
    axes, rank = node.input(_AXES).constant, x.rank
    if axes is not None and rank is not None:
        return op.same(x, _spread(op, pads, [node.axis(axis, rank) for axis in axes.tolist()], rank), value)
    if axes is not None and axes.size and (axes < 0).all():
        tail = int(-axes.min())
        flat, before = collapse(op, x, tail)
        full = _spread(op, pads, [axis + tail + 1 for axis in axes.tolist()], tail + 1)
        return restore(op, op.same(flat, full, value), before)
    return op.same(x, _scattered(node, op), value)


@downgrade("Pad", at=19)
def wrap_by_indices(node: Node, op: Emitter) -> Value:
    """Repeats what wraps around by indices, axis by axis."""
    return _axis_by_axis(node, op) if node.attr("mode") == "wrap" else op.same()


# ---- pads of all axes


def _spread(op: Emitter, pads: Value, axes: list[int], rank: int) -> Value:
    """Returns the pads of these axes, 0 for all others of a known rank."""
    count, known = len(axes), pads.constant
    places = [axes.index(axis) + half * count if axis in axes else 2 * count for half in (0, 1) for axis in range(rank)]
    if known is not None:
        return op.const([[*known.tolist(), 0][place] for place in places])
    if places == list(range(2 * count)):
        return pads
    return op.Gather(op.Concat(pads, op.const([0]), axis=0), op.const(places), axis=0)


def _scattered(node: Node, op: Emitter) -> Value:
    """Writes the same at run time, where the axes are computed or the rank is not known."""
    numbers = Numbers(op)
    rank = numbers.rank(node.input(0))
    axes = non_negative(op, cast(op, node.input(_AXES), INT64), rank.value)
    places = op.Concat(axes, (numbers.of(axes) + rank).value, axis=0)
    zeros = op.at(8).Expand(op.const([0]), (rank * 2).value)
    return op.at(11).ScatterElements(zeros, places, node.input(_PADS), axis=0)


# ---- axis by axis


def _axis_by_axis(node: Node, op: Emitter) -> Value:
    """Cuts what negative pads take away, then pads each axis: with blocks of the value, or by indices."""
    x, value, mode = node.input(0), node.optional_input(_VALUE), node.attr("mode")
    axes, pads = _axes_and_pads(node, op)
    if value is None and mode == _CONSTANT:
        dtype = node.dtype(0)
        value = op.const("" if dtype == STRING else 0, dtype)
    numbers, count = Numbers(op), len(axes)
    given = numbers.of(pads)
    more = given.at_least(0).whole()
    if given.known is not None:
        x = _cut(op, x, axes, given.known.tolist())
    else:
        x = _cut_at_run_time(numbers, x, axes, more - given)
    for index, axis in enumerate(axes):
        begin, end = more[index], more[index + count]
        if begin.number == end.number == 0:
            continue
        if mode == _CONSTANT:
            before, after = (_block(numbers, x, value, axis, count, length) for length in (begin, end))
            x = op.Concat(*(piece for piece in (before, x, after) if piece), axis=axis)
        else:
            x = op.Gather(x, _indices(numbers.size(x, axis), begin, end, mode).value, axis=axis)
    return x


def _axes_and_pads(node: Node, op: Emitter) -> tuple[list[int], Value]:
    """Returns the axes that are padded, and their pads. All axes are as many as the data have, or half as many as the
    pads."""
    pads, axes = node.input(_PADS), node.optional_input(_AXES)
    if axes is None:
        count = pads.shape[0] if pads.shape and node.input(0).rank is None else None
        return list(range(count // 2 if isinstance(count, int) else node.rank(0))), pads
    if axes.constant is not None:
        return axes.constant.tolist(), pads
    return list(range(node.rank(0))), _scattered(node, op)


def _cut(op: Emitter, x: Value, axes: Sequence[int], pads: Sequence[int]) -> Value:
    """Returns what is left where pads are negative."""
    pairs = zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True)
    cut = [(axis, max(-begin, 0), min(end, 0) or END) for axis, begin, end in pairs if begin < 0 or end < 0]
    if not cut:
        return x
    names, starts, ends = zip(*cut, strict=True)
    return op.at(11).Slice(x, op.const(starts), op.const(ends), op.const(names))


def _cut_at_run_time(numbers: Numbers, x: Value, axes: Sequence[int], less: Number) -> Value:
    op, count = numbers.op, len(axes)
    ends = numbers.sizes(x, axes) - less[count:]
    return op.at(11).Slice(x, less[:count].value, ends.value, op.const(axes))


def _block(numbers: Numbers, x: Value, value: Value | None, axis: int, rank: int, length: Number) -> Value | None:
    """Writes the value in the shape of the data, except for the length of one axis; nothing if that is 0."""
    if length.number == 0:
        return None
    sizes = numbers.sizes(x)
    before, after = [sizes[:axis]] if axis else [], [sizes[axis + 1 :]] if axis + 1 < rank else []
    return numbers.op.at(8).Expand(value, numbers.vector([*before, length, *after]))


def _indices(size: Number, begin: Number, end: Number, mode: str) -> Number:
    """Returns which elements of an axis the padded one consists of. What is padded is not empty."""
    place, last = size.numbers.up_to(begin + size + end) - begin, size - 1
    if mode == "edge":
        return place.at_least(0).at_most(last)
    if mode == "wrap":
        return place % size.at_least(1)
    return last - (place % (2 * last).at_least(1) - last).abs()
