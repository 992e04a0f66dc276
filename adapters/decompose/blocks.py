# SPDX-License-Identifier: Apache-2.0
"""Col2Im.

18: blocks are added up to an image.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import FLOATS, cast, working_dtype
from onnx_convert.adapters.lib.shapes import count_up, known_size, part, product, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

    Numbers = numpy.ndarray[Any, Any]


@downgrade("Col2Im", at=18)
def put_blocks_together(node: Node, op: Emitter) -> Value:
    """ConvTranspose of floats in blocks of a known size; else each element is added to where it belongs."""
    op.equivalent("the sum may be taken in another order")
    block = node.input(2).constant
    if block is not None and node.dtype(0) in FLOATS:
        return _transposed_convolution(node, op, block)
    return _scattered(node, op)


def _windows(node: Node, axes: int) -> tuple[list[int], Numbers, Numbers]:
    """Pads, strides and dilations."""
    ones = [1] * axes
    strides, dilations = (numpy.array(node.attr(name) or ones) for name in ("strides", "dilations"))
    return node.attr("pads") or [0] * 2 * axes, strides, dilations


def _transposed_convolution(node: Node, op: Emitter, block: Numbers) -> Value:
    """With a kernel for each element of a block that puts it into its place; images one by one."""
    x, image, axes, count = node.input(0), node.input(1), len(block), prod(block.tolist())
    pads, strides, dilations = _windows(node, axes)
    more = numpy.array(pads[:axes]) + pads[axes:] - dilations * (block - 1) - 1
    blocks: list[int] | Value
    if image.constant is not None:
        room = image.constant + more
        blocks, missing = (room // strides + 1).tolist(), (room % strides).tolist()
    else:
        moves = op.Add(image, op.const(more))
        last = op.Div(moves, op.const(strides))
        blocks, missing = op.Add(last, op.const([1] * axes)), None
    batch, channels = known_size(x, 0), known_size(x, 1)
    y = op.ConvTranspose(
        op.Reshape(
            x, _joined(op, [-1 if batch is None or channels is None else batch * channels // count, count], blocks)
        ),
        op.const(numpy.eye(count).reshape(count, 1, *block), node.dtype(0)),
        kernel_shape=block.tolist(),
        strides=strides.tolist(),
        pads=pads,
        dilations=dilations.tolist(),
        output_padding=missing,
    )
    if missing is None:  # what lies beyond the last block
        rest = op.Sub(moves, op.Mul(last, op.const(strides)))
        y = op.Pad(y, op.Concat(op.const([0] * (axes + 4)), rest, axis=0))
    size = image if image.constant is None else image.constant.tolist()
    if batch is None and channels is None:
        return op.Reshape(y, op.Concat(part(op, op.Shape(x), 0, 1), _joined(op, [-1], size), axis=0))
    head = [-1 if batch is None else batch, -1 if channels is None else channels // count]
    return op.Reshape(y, _joined(op, head, size))


def _axes(node: Node) -> int:
    """How many axes the image has, from whatever tells it."""
    for values in (node.input(1).shape, node.input(2).shape):
        if values and isinstance(values[0], int):
            return values[0]
    if node.has("strides") or node.has("dilations"):
        return len(node.attr("strides") or node.attr("dilations"))
    rank = node.output().rank
    if rank is None:
        node.refuse("the number of the image's axes is not known", "give the model's inputs shapes", unknown=True)
    return rank - 2


def _scattered(node: Node, op: Emitter) -> Value:
    """The index of each element in the padded image, which is what ScatterElements adds it to."""
    x, image, block = (node.input(index) for index in range(3))
    axes = _axes(node)
    pads, strides, dilations = _windows(node, axes)
    padded = op.Add(image, op.const(numpy.add(pads[:axes], pads[axes:])))
    spread = op.Mul(op.Sub(block, op.const([1] * axes)), op.const(dilations))
    counts = op.Add(
        op.Div(op.Sub(padded, op.Add(spread, op.const([1] * axes))), op.const(strides)), op.const([1] * axes)
    )
    index: Value | None = None
    for axis in range(axes):  # in the order of x: places in a block, then blocks
        within, among = ([-1 if place == own else 1 for place in range(2 * axes)] for own in (axis, axes + axis))
        inside = op.Mul(count_up(op, part(op, block, axis, axis + 1)), op.const([int(dilations[axis])]))
        start = op.Mul(count_up(op, part(op, counts, axis, axis + 1)), op.const([int(strides[axis])]))
        place = op.Add(op.Reshape(inside, op.const(within)), op.Reshape(start, op.const(among)))
        step = product(op, part(op, padded, axis + 1)) if axis + 1 < axes else None
        place = place if step is None else op.Mul(place, step)
        index = place if index is None else op.Add(index, place)
    flat = op.Reshape(index, op.const([-1]))
    sizes = op.Shape(x)
    head = op.Concat(part(op, sizes, 0, 1), op.Div(part(op, sizes, 1, 2), product(op, block)), axis=0)
    shape = op.Concat(head, op.Shape(flat), axis=0)
    dtype = node.dtype(0)
    wide = working_dtype(dtype) if dtype in FLOATS else dtype  # few runtimes add halves up
    nothing = op.Expand(op.const(0, wide), op.Concat(head, product(op, padded), axis=0))
    elements = cast(op, reshape(op, x, shape), wide)
    y = op.ScatterElements(nothing, op.Expand(flat, shape), elements, axis=2, reduction="add")
    y = reshape(op, cast(op, y, dtype), op.Concat(head, padded, axis=0))
    if not any(pads):
        return y
    first = op.const(pads[:axes])
    return op.at(13).Slice(y, first, op.Add(first, image), op.const(list(range(2, axes + 2))))


def _joined(op: Emitter, head: list[int], tail: list[int] | Value) -> Value:
    return op.const([*head, *tail]) if isinstance(tail, list) else op.Concat(op.const(head), tail, axis=0)
