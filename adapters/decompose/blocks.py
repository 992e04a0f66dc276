# SPDX-License-Identifier: Apache-2.0
"""Col2Im.

18: blocks are added up to an image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import numpy

from onnx_convert.adapter import LARGEST, downgrade
from onnx_convert.adapters.lib.dtypes import FLOATS, STRING, cast, working_dtype
from onnx_convert.adapters.lib.numbers import Number, Numbers

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

    Array = numpy.ndarray[Any, Any]


@downgrade("Col2Im", at=18)
def put_blocks_together(node: Node, op: Emitter) -> Value:
    """Writes a ConvTranspose for floats in blocks of a known size; else adds each element to where it belongs."""
    if node.input(0).dtype == STRING:
        node.refuse("strings have no sum")
    op.equivalent("the sum may be taken in another order")
    blocks = _Blocks.of(node, Numbers(op))
    if blocks.size.known is not None and node.dtype(0) in FLOATS:
        return _transposed_convolution(node, op, blocks, blocks.size.known.astype(int))
    return _scattered(node, op, blocks)


@dataclass
class _Blocks:
    """The places of the blocks in the image: a vector each, of as many elements as the image has axes.

    `left` is what is left over at the end of the image with its pads, behind the last block.
    """

    image: Number
    size: Number
    before: Array
    after: Array
    strides: Array
    dilations: Array
    counts: Number
    left: Number

    @classmethod
    def of(cls, node: Node, numbers: Numbers) -> _Blocks:
        image, size = (numbers.of(node.input(index), 0) for index in (1, 2))
        axes = _axes(node)
        pads = numpy.array(node.attr("pads") or [0] * 2 * axes)
        strides, dilations = (numpy.array(node.attr(name) or [1] * axes) for name in ("strides", "dilations"))
        before, after = pads[:axes], pads[axes:]
        room = replace(image - ((size - 1) * dilations + (1 - before - after)), low=0)
        steps = room // strides
        return cls(image, size, before, after, strides, dilations, steps + 1, room - steps * strides)


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


def _transposed_convolution(node: Node, op: Emitter, blocks: _Blocks, size: Array) -> Value:
    """Writes a kernel for each element of a block that puts it into its place; images one by one."""
    x, numbers, count = node.input(0), blocks.image.numbers, prod(size.tolist())
    node.limit(count, count, most=LARGEST)
    batch, channels = numbers.size(x, 0), numbers.size(x, 1) // count
    known = blocks.left.known
    y = op.ConvTranspose(
        op.Reshape(x, numbers.vector([-1 if batch.number is None else batch * channels, count, blocks.counts])),
        op.const(numpy.eye(count).reshape(count, 1, *size), node.dtype(0)),
        kernel_shape=size.tolist(),
        strides=blocks.strides.tolist(),
        dilations=blocks.dilations.tolist(),
        pads=None if known is None else [*blocks.before.tolist(), *blocks.after.tolist()],
        output_padding=None if known is None else [int(number) for number in known],
    )
    if known is None:  # first what lies beyond the last block, then without the pads
        none = [0] * 2
        y = op.Pad(y, numbers.vector([none, -blocks.before, none, blocks.left - blocks.after]))
    return op.Reshape(y, numbers.target([batch, channels, blocks.image]))


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
