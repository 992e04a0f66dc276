# SPDX-License-Identifier: Apache-2.0
"""MaxUnpool, RoiAlign, GridSample, CenterCropPad, AffineGrid: operators on images.

9: MaxUnpool.   10: RoiAlign.   16: GridSample.   18: CenterCropPad.   20: AffineGrid.

The one that became Resize (10) has a file with its versions, and so has what GridSample does.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.gridsample import gather_neighbours
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, INT64, cast, working_dtype
from onnx_convert.adapters.lib.indices import fixed
from onnx_convert.adapters.lib.interpolation import SPREAD
from onnx_convert.adapters.lib.numbers import Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Value
    from onnx_convert.adapters.lib.numbers import Number


@downgrade("GridSample", at=16)
def gather_around_points(node: Node, op: Emitter) -> Value:
    """The elements around each point of the grid are gathered and weighed."""
    return gather_neighbours(node, op, 2)


# ---- AffineGrid


@downgrade("AffineGrid", at=20)
def transform_axis_by_axis(node: Node, op: Emitter) -> Value:
    """Each column of the matrix times the coordinates of its axis; the sum, and the last column."""
    theta, dtype = node.input(0), node.dtype(0)
    axes, numbers = _spatial_axes(node), Numbers(op)
    written_out, sizes = "a product of matrices is written out", numbers.of(node.input(1), 0)
    if node.attr("align_corners") and any(sizes[axis + 2].known in (None, 1) for axis in range(axes)):
        op.equivalent(f"{written_out}; an axis of one element has it at -1, which no text specifies")
    else:
        op.equivalent(written_out)
    columns = [op.at(9).Slice(theta, axes=[2], starts=[i], ends=[i + 1]) for i in range(axes + 1)]
    ones = [1] * axes
    rows = [op.Reshape(column, op.const([0, *ones, axes])) for column in columns]
    total = rows[-1]
    for axis in range(axes):  # the matrix names the last axis first
        place = _coordinates(node, numbers, axis + 2, working_dtype(dtype)).along(axis + 1, axes + 2)
        total = op.Add(total, op.Mul(place.in_dtype(dtype), rows[axes - 1 - axis]))
    return total


def _spatial_axes(node: Node) -> int:
    """Returns 2 for images, 3 for volumes."""
    theta, size, y = node.input(0), node.input(1), node.output()
    for shape, at, less in ((theta.shape, 1, 0), (theta.shape, 2, 1), (size.shape, 0, 2)):
        if shape is not None and isinstance(known := shape[at], int):
            return known - less
    return (y.rank if y.rank is not None else 2 + node.rank(0)) - 2


def _coordinates(node: Node, numbers: Numbers, axis: int, dtype: int) -> Number:
    """Returns numbers from -1 to 1 along one axis: of the centres of its elements or, if corners are aligned, from
    first to last."""
    size = numbers.of(node.input(1), 0)[axis]
    reals = numbers.to(dtype if size.known is None else DOUBLE)
    twice, count = reals.of(numbers.up_to(size)) * 2, reals.of(size)
    if node.attr("align_corners"):
        return twice / (count - 1).at_least(1) - 1
    return (twice + 1) / count - 1


# ---- RoiAlign


@downgrade("RoiAlign", at=10)
def gather_samples(node: Node, op: Emitter) -> Value:
    """The four elements around each sampling point of a region, weighed; then their mean or maximum in each bin."""
    ratio = node.attr("sampling_ratio")
    if ratio <= 0:
        node.refuse(
            "the number of samples depends on the size of each region where sampling_ratio is 0",
            "set sampling_ratio to a number, if the model's maker agrees",
        )
    op.equivalent(SPREAD)
    x, dtype = node.input(0), node.dtype(0)
    work, numbers = working_dtype(dtype), Numbers(op)
    height, width, channels = (numbers.size(x, axis) for axis in (2, 3, 1))
    if channels.number == 0:
        bins = numbers.size(node.input(1), 0), 0, node.attr("output_height"), node.attr("output_width")
        return op.at(8).Expand(op.const(0, dtype), numbers.vector(bins))
    regions = op.Mul(cast(op, node.input(1), work), op.const(node.attr("spatial_scale"), work))
    rows = _samples(node, op, regions, 1, node.attr("output_height"), height, work, [3, 4])
    columns = _samples(node, op, regions, 0, node.attr("output_width"), width, work, [1, 2])
    image = op.Unsqueeze(op.Cast(node.input(2), to=INT64), axes=[1, 2, 3, 4])
    pixels = op.Reshape(op.Transpose(x, perm=[0, 2, 3, 1]), numbers.vector([-1, channels]))
    first = op.Mul(image, height.value)
    lines = [(op.Mul(op.Add(first, row), width.value), weight) for row, weight in rows]
    terms = []
    for (line, high), (column, wide) in product(lines, columns):
        elements = cast(op, op.Gather(pixels, op.Add(line, column), axis=0), work)
        terms.append(op.Mul(elements, op.Unsqueeze(op.Mul(high, wide), axes=[5])))
    if node.attr("mode") == "max":  # of the weighed elements, as every runtime has it
        y = op.ReduceMax(op.Max(*terms), axes=[2, 4], keepdims=0)
    else:
        y = op.ReduceMean(op.Sum(*terms), axes=[2, 4], keepdims=0)
    return cast(op, op.Transpose(y, perm=[0, 3, 1, 2]), dtype)


def _samples(
    node: Node, op: Emitter, regions: Value, first: int, bins: int, length: Number, dtype: int, axes: list[int]
) -> list[tuple[Value, Value]]:
    """Returns for the sampling points [region, bin, sample] along one axis the elements before and after, and their
    weights.

    A point more than one element outside weighs nothing, one that is nearer is moved to the edge.
    """
    ratio = node.attr("sampling_ratio")
    zero, one = op.const(0, dtype), op.const(1, dtype)
    start, end = (op.at(9).Slice(regions, axes=[1], starts=[i], ends=[i + 1]) for i in (first, first + 2))
    extent = op.Max(op.Sub(end, start), one)
    node.limit(bins, ratio)
    parts = (numpy.arange(bins)[:, None] + (numpy.arange(ratio) + 0.5) / ratio) / bins
    at = op.Add(op.Unsqueeze(start, axes=[2]), op.Mul(op.Unsqueeze(extent, axes=[2]), op.const(parts[None], dtype)))
    size = length.numbers.to(dtype).of(length)
    outside = op.Or(op.Less(at, op.const(-1, dtype)), op.Greater(at, size.value))
    seen = op.Cast(op.Not(outside), to=dtype)
    last = (size - 1).value
    inside = op.Min(op.Max(at, zero), last)
    low = op.Floor(inside)
    after = op.Sub(inside, low)
    taps = ((low, op.Sub(one, after)), (op.Min(op.Add(low, one), last), after))
    return [
        (op.Unsqueeze(op.Cast(index, to=INT64), axes=axes), op.Unsqueeze(op.Mul(weight, seen), axes=axes))
        for index, weight in taps
    ]


# ---- MaxUnpool


@downgrade("MaxUnpool", at=9)
def find_the_source_of_each_element(node: Node, op: Emitter) -> Value:
    """An element of the output is the one whose index names it, or 0; windows that do not overlap have one each."""
    shape = fixed(node.input(0).shape)
    if shape is None:
        node.refuse("the shape of X is not known", "give the model's inputs shapes", unknown=True)
    axes, kernel = len(shape) - 2, node.attr("kernel_shape")
    pads, strides = node.attr("pads") or [0] * 2 * axes, node.attr("strides") or [1] * axes
    sizes = [
        (size - 1) * stride + width - before - after
        for size, stride, width, before, after in zip(shape[2:], strides, kernel, pads[:axes], pads[axes:], strict=True)
    ]
    if (given := node.optional_input(2)) is not None:
        condition = "`output_shape` is what kernel, strides and pads lead to"
        stated = given.constant.tolist() if given.constant is not None else node.output().shape or ()
        if any(isinstance(size, int) and size != own for size, own in zip(stated, (*shape[:2], *sizes), strict=False)):
            node.refuse(f"runtimes disagree on indices unless {condition}", "pad the output by an operator of its own")
        if given.constant is None:
            op.conditional(f"{condition}: runtimes disagree on anything else")
    if strides == kernel and not any(pads):
        return _compared_in_windows(node, op, shape, kernel)
    return op.Reshape(_matched(node, op, prod(shape[:2]) * prod(sizes)), op.const([*shape[:2], *sizes]))


def _compared_in_windows(node: Node, op: Emitter, shape: Sequence[int], kernel: list[int]) -> Value:
    """Compares each window with the index that points into it."""
    sizes = [size * width for size, width in zip(shape[2:], kernel, strict=True)]
    parts = [(size, width) for size, width in zip(shape[2:], kernel, strict=True)]
    node.limit(*shape[:2])
    for size, width in parts:
        node.limit(size, width)
    place = op.const(numpy.arange(prod(shape[:2])).reshape(*shape[:2], *[1, 1] * len(parts)) * prod(sizes))
    for axis, (size, width) in enumerate(parts):
        along = numpy.arange(size * width).reshape(size, width, *[1, 1] * (len(parts) - axis - 1))
        place = op.Add(place, op.const(along * prod(sizes[axis + 1 :])))
    single = op.const([*shape[:2], *(number for size in shape[2:] for number in (size, 1))])
    hit = op.Equal(op.Reshape(node.input(1), single), place)
    y = op.at(9).Where(hit, op.Reshape(node.input(0), single), op.const(0, node.dtype(0)))
    return op.Reshape(y, op.const([*shape[:2], *sizes]))


def _matched(node: Node, op: Emitter, count: int) -> Value:
    """Returns so many elements, each compared with all indices."""
    flat = op.const([-1])
    node.limit(count)
    hits = op.Cast(op.Equal(op.const(numpy.arange(count)[:, None]), op.Reshape(node.input(1), flat)), to=FLOAT)
    found = op.Cast(op.ReduceMax(hits, axes=[1], keepdims=0), to=INT64)
    source = op.Mul(op.Add(op.ArgMax(hits, axis=1, keepdims=0), op.const(1)), found)
    nothing = op.const([0], node.dtype(0))
    return op.Gather(op.Concat(nothing, op.Reshape(node.input(0), flat), axis=0), source, axis=0)


# ---- CenterCropPad


@downgrade("CenterCropPad", at=18)
def pad_then_slice(node: Node, op: Emitter) -> Value:
    """Pads what is too small, slices what is too large; an odd element more is added or dropped at the end."""
    x, numbers, axes = node.input(0), Numbers(op), node.attr("axes")
    if axes == []:
        return op.Identity(x)
    sizes, target = numbers.sizes(x, axes), numbers.of(node.input(1), 0)
    more, less = ((one - other).at_least(0).whole() for one, other in ((target, sizes), (sizes, target)))
    named = None if axes is None else op.const(axes)
    if more.known is None or more.known.any():
        before = more // 2
        x = op.at(18).Pad(x, numbers.vector([before, more - before]), None, named)
    start, end = less // 2, less // 2 + target
    if less.known is None:
        return op.Slice(x, start.value, end.value, named)
    cut = [place for place, count in enumerate(less.known.tolist()) if count]
    bounds = [[int(number[place].number) for place in cut] for number in (start, end)]
    names = [(axes or range(len(less.known)))[place] for place in cut]
    return op.Slice(x, *(op.const(numbers) for numbers in (*bounds, names))) if cut else x
