# SPDX-License-Identifier: Apache-2.0
"""Col2Im.

18: blocks are added up to an image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import FLOATS, STRING, cast, working_dtype
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import ranked

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

    Array = numpy.ndarray[Any, Any]


@downgrade("Col2Im", at=18)
def put_blocks_together(node: Node, op: Emitter) -> Value:
    """Shifts rows and adds them up for floats in blocks of a known size; else adds each element to where it belongs."""
    if node.input(0).dtype == STRING:
        node.refuse("strings have no sum")
    op.equivalent("the sum may be taken in another order")
    blocks = _Blocks.of(node, Numbers(op))
    if blocks.size.known is not None and node.dtype(0) in FLOATS:
        return _folded(node, op, blocks, blocks.size.known.astype(int))
    return _scattered(node, op, blocks)


@dataclass
class _Blocks:
    """The places of the blocks in the image: a vector each, of as many elements as the image has axes."""

    image: Number
    size: Number
    before: Array
    after: Array
    strides: Array
    dilations: Array
    counts: Number

    @classmethod
    def of(cls, node: Node, numbers: Numbers) -> _Blocks:
        image, size = (numbers.of(node.input(index), 0) for index in (1, 2))
        axes = _axes(node)
        pads = numpy.array(node.attr("pads") or [0] * 2 * axes)
        strides, dilations = (numpy.array(node.attr(name) or [1] * axes) for name in ("strides", "dilations"))
        before, after = pads[:axes], pads[axes:]
        room = replace(image - ((size - 1) * dilations + (1 - before - after)), low=0)
        return cls(image, size, before, after, strides, dilations, room // strides + 1)


def _axes(node: Node) -> int:
    """Returns how many axes the image has, from whatever tells it."""
    for values in (node.input(1).shape, node.input(2).shape):
        if values and isinstance(values[0], int):
            return values[0]
    if node.has("strides") or node.has("dilations"):
        return len(node.attr("strides") or node.attr("dilations"))
    rank = node.output().rank
    if rank is None:
        node.refuse("the number of the image's axes is not known", "give the model's inputs shapes", unknown=True)
    return rank - 2


def _folded(node: Node, op: Emitter, blocks: _Blocks, size: Array) -> Value:
    """Adds up axis by axis, the last first. A row for each place in a block, longer by one step than the image is, read
    as rows of the image's length, puts each element where it belongs. Nothing but zeros is added to an element, so an
    infinity stays where it is."""
    x, numbers, dtype = node.input(0), blocks.image.numbers, node.dtype(0)
    places = [numbers.of(int(length)) for length in size]
    pairs = [part for axis, place in enumerate(places) for part in (place, blocks.counts[axis])]
    axes, rank = range(len(places)), 2 * len(places) + 1
    own = op.Reshape(cast(op, x, working_dtype(dtype)), numbers.vector([-1, *places, blocks.counts]))
    order = [0, *(axis + half for axis in range(1, len(places) + 1) for half in (0, len(places)))]
    y, inner = own if len(places) == 1 else op.Transpose(own, perm=order[:rank]), numbers.of(1)
    padded = blocks.image + (blocks.before + blocks.after)
    for axis in reversed(axes):
        place, count, length = pairs[2 * axis], pairs[2 * axis + 1], padded[axis]
        stride, step = int(blocks.strides[axis]), int(blocks.dilations[axis])
        if stride > 1:
            apart = op.Reshape(y, numbers.vector([-1, 1, inner]))
            y = _lengthened(op, apart, numbers.of(stride - 1))
        rows = op.Reshape(y, numbers.vector([-1, count * stride, inner]))
        rows = _lengthened(op, rows, length + step - count * stride)
        flat = op.Reshape(rows, numbers.vector([-1, place * (length + step), inner]))
        shifted = _lengthened(op, flat, place * -step)
        y = op.Reshape(shifted, numbers.vector([-1, place, length, inner]))
        y = op.at(12).ReduceSum(y, axes=[1], keepdims=0)
        inner *= length
    y = cast(op, y, dtype)
    if blocks.before.any() or blocks.after.any():
        ends = blocks.image + blocks.before
        y = op.Reshape(y, numbers.vector([-1, padded]))
        y = op.at(13).Slice(y, op.const(blocks.before), ends.value, op.const([axis + 1 for axis in axes]))
    head = [numbers.size(x, 0), numbers.size(x, 1) // int(size.prod())]
    return op.Reshape(y, numbers.target([*head, blocks.image]))


def _lengthened(op: Emitter, x: Value, more: Number) -> Value:
    """Adds zeros to the second of three axes, or takes away what is behind."""
    if more.number is None:
        none = [0] * 3
        return op.at(11).Pad(ranked(op, x, 3), more.numbers.vector([none, 0, more, 0]))
    return op.at(10).Pad(x, pads=[0, 0, 0, 0, int(more.number), 0]) if more.number else x


def _scattered(node: Node, op: Emitter, blocks: _Blocks) -> Value:
    """Adds each element to where its index in the padded image says, by ScatterElements."""
    x, numbers, axes, dtype = node.input(0), blocks.image.numbers, len(blocks.before), node.dtype(0)
    padded = blocks.image + (blocks.before + blocks.after)
    lines = []
    for axis in range(axes):  # in the order of x: places in a block, then blocks
        inside = numbers.up_to(blocks.size[axis]) * int(blocks.dilations[axis])
        start = numbers.up_to(blocks.counts[axis]) * int(blocks.strides[axis])
        place = inside.along(axis, 2 * axes) + start.along(axes + axis, 2 * axes)
        lines.append((place * padded[axis + 1 :].product() if axis + 1 < axes else place).value)
    flat = op.Reshape(reduce(op.Add, lines), op.const([-1]))
    head = [numbers.size(x, 0), numbers.size(x, 1) // blocks.size.product()]
    shape = numbers.vector([*head, numbers.size(flat, 0)])
    wide = working_dtype(dtype) if dtype in FLOATS else dtype  # few runtimes add halves up
    nothing = op.Expand(op.const(0, wide), numbers.vector([*head, padded.product()]))
    elements = op.Reshape(cast(op, x, wide), shape)
    y = op.ScatterElements(nothing, op.Expand(flat, shape), elements, axis=2, reduction="add")
    y = op.Reshape(cast(op, y, dtype), numbers.vector([*head, padded]))
    if not (blocks.before.any() or blocks.after.any()):
        return y
    ends = blocks.image + blocks.before
    return op.at(13).Slice(y, op.const(blocks.before), ends.value, op.const(range(2, axes + 2)))
