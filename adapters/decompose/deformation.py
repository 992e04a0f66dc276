# SPDX-License-Identifier: Apache-2.0
"""DeformConv, which is there from 19 on: the elements around every point that a kernel sees are gathered and weighed,
and a product of matrices does the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import INT64, cast, working_dtype
from onnx_convert.adapters.lib.indices import fixed, into, places
from onnx_convert.adapters.lib.shapes import known_size, part, size_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Value

    Size = int | Value  # known, or a vector of one element
    Array = numpy.ndarray[Any, Any]

_OFFSET: Final = 2
_BIAS: Final = 3
_MASK: Final = 4
_MARGIN: Final = 2  # zeros around the image: a point further out lies between the first two, whatever the image holds


@dataclass(frozen=True)
class _Kernel:
    """The numbers that the weights and attributes give. `channels` are those of the whole image."""

    sizes: tuple[int, ...]
    channels: int
    filters: int
    groups: int
    offset_groups: int

    @property
    def axes(self) -> int:
        return len(self.sizes)

    @property
    def elements(self) -> int:
        return prod(self.sizes)

    def column(self, numbers: Array) -> Array:
        """Numbers of the kernel's elements, before as many axes as the image has."""
        return numbers.reshape(-1, *[1] * self.axes)


@downgrade("DeformConv", at=19)
def gather_around_moved_points(node: Node, op: Emitter) -> Value:
    """For each group of offsets, kernel element and output place the point in the image; the elements around it, each
    times its nearness; the columns of an ordinary convolution."""
    kernel, dtype = _kernel(node), node.dtype(0)
    op.large(f"a Gather for each of the {2**kernel.axes} neighbours of every point")
    op.equivalent("the interpolation is written out, and may round otherwise")
    work = working_dtype(dtype)
    y = _multiplied(node, op, kernel, _columns(node, op, kernel, work), work)
    bias = node.optional_input(_BIAS)
    if bias is not None:
        y = op.Add(y, op.Reshape(cast(op, bias, work), op.const([kernel.filters, *[1] * kernel.axes])))
    return cast(op, y, dtype)


def _kernel(node: Node) -> _Kernel:
    shape, groups = fixed(node.shape(1)), node.attr("group")
    if shape is None:
        node.refuse("the shape of the weights is not known", "give the weights a shape", unknown=True)
    return _Kernel(shape[2:], shape[1] * groups, shape[0], groups, node.attr("offset_group"))


def _columns(node: Node, op: Emitter, kernel: _Kernel, dtype: int) -> Value:
    """What each kernel element sees: [batch, offset groups * elements, places..., channels of an offset group]."""
    around = [0, 0, *[_MARGIN] * kernel.axes]
    image = op.Pad(cast(op, node.input(0), dtype), op.const([*around, *around]))
    shape = op.Shape(image)
    sizes = [known_size(image, axis) or size_at(op, shape, axis) for axis in range(2, kernel.axes + 2)]
    starts = _starts(op, kernel, image, _times(op, sizes))
    taps = [_taps(node, op, kernel, axis, sizes, dtype) for axis in range(kernel.axes)]
    each = kernel.channels // kernel.offset_groups
    blocks = op.Reshape(image, op.const([0, kernel.offset_groups, each, _known(_times(op, sizes))]))
    elements = op.Reshape(op.Transpose(blocks, perm=[0, 1, 3, 2]), op.const([-1, each]))
    mask = node.optional_input(_MASK)
    masks = [] if mask is None else [cast(op, mask, dtype)]
    seen = []
    for corner in product(*taps):
        place = reduce(op.Add, [*starts, *(place for place, _ in corner)])
        weight = reduce(op.Mul, [*masks, *(nearness for _, nearness in corner)])
        seen.append(op.Mul(op.Gather(elements, place, axis=0), op.Unsqueeze(weight, op.const([-1]))))
    return reduce(op.Add, seen)


def _starts(op: Emitter, kernel: _Kernel, image: Value, pixels: Size) -> list[Value]:
    """Where the elements of each image begin, and in it those of each group of channels."""
    starts = []
    if known_size(image, 0) != 1:
        batch = op.Mul(places(op, image, 0), _value(op, _times(op, [pixels, kernel.offset_groups])))
        starts.append(op.Reshape(batch, op.const([-1, 1, *[1] * kernel.axes])))
    if kernel.offset_groups > 1:
        group = kernel.column(numpy.repeat(numpy.arange(kernel.offset_groups), kernel.elements))
        starts.append(op.const(group * pixels) if isinstance(pixels, int) else op.Mul(op.const(group), pixels))
    return starts


def _taps(
    node: Node, op: Emitter, kernel: _Kernel, axis: int, sizes: Sequence[Size], dtype: int
) -> list[tuple[Value, Value]]:
    """For the points along one axis the places of the elements before and after, and how near each is: both [batch,
    offset groups * elements, places...]."""
    axes, offset = kernel.axes, node.input(_OFFSET)
    work = working_dtype(node.dtype(_OFFSET))
    node.limit(*kernel.sizes, kernel.offset_groups)
    channels = numpy.arange(kernel.offset_groups * kernel.elements) * axes + axis
    point = op.Add(
        cast(op, op.Gather(offset, op.const(channels), axis=1), work), _unmoved(node, op, kernel, axis, work)
    )
    size, step = sizes[axis], _value(op, _times(op, sizes[axis + 1 :]))
    if isinstance(size, int):
        last = op.const([size - _MARGIN], work)
    else:
        last = op.Cast(op.Sub(size, op.const([_MARGIN])), to=work)
    point = op.Min(op.Max(point, op.const([0], work)), last)
    before = op.Floor(point)
    after, place = op.Sub(point, before), op.Cast(before, to=INT64)
    if axis < axes - 1:
        place = op.Mul(place, step)
    after = cast(op, after, dtype)
    return [(place, op.Sub(op.const([1], dtype), after)), (op.Add(place, step), after)]


def _unmoved(node: Node, op: Emitter, kernel: _Kernel, axis: int, dtype: int) -> Value:
    """Where the points along one axis are without offsets, counted from the margin."""
    axes, offset = kernel.axes, node.input(_OFFSET)
    stride = (node.attr("strides") or [1] * axes)[axis]
    dilation = (node.attr("dilations") or [1] * axes)[axis]
    begin = _MARGIN - (node.attr("pads") or [0] * axes)[axis]
    node.limit(*kernel.sizes, kernel.offset_groups)
    element = numpy.tile(numpy.indices(kernel.sizes)[axis].ravel(), kernel.offset_groups)
    first, along = kernel.column(element * dilation + begin), [1] * axes
    along[axis] = -1
    count = known_size(offset, axis + 2)
    if count is not None:
        return op.const(first + numpy.arange(count).reshape(along) * stride, dtype)
    moved = op.Reshape(op.Mul(places(op, offset, axis + 2), op.const([stride])), op.const(along))
    return op.Cast(op.Add(op.const(first), moved), to=dtype)


def _multiplied(node: Node, op: Emitter, kernel: _Kernel, columns: Value, dtype: int) -> Value:
    """The weights times what they see, summed over kernel elements and channels of each group."""
    groups, offset, each = kernel.groups, node.input(_OFFSET), kernel.channels // kernel.offset_groups
    inner = kernel.channels // groups * kernel.elements
    places_in = None if offset.shape is None else fixed(offset.shape[2:])
    count = -1 if places_in is None else prod(places_in)
    spread = op.Reshape(columns, op.const([0, kernel.offset_groups, kernel.elements, count, each]))
    turned = op.Transpose(spread, perm=[0, 1, 4, 2, 3])
    weights = op.Reshape(cast(op, node.input(1), dtype), op.const([groups, kernel.filters // groups, inner]))
    y = op.MatMul(weights, op.Reshape(turned, op.const([0, groups, inner, count])))
    sizes = offset.shape
    target = None if sizes is None else (sizes[0], kernel.filters, *sizes[2:])

    def measured() -> Value:
        shape = op.Shape(offset)
        return op.Concat(part(op, shape, 0, 1), op.const([kernel.filters]), part(op, shape, 2), axis=0)

    return into(op, y, target, measured)


def _times(op: Emitter, sizes: Sequence[Size]) -> Size:
    """The product of sizes, a number if all of them are."""
    known = prod(size for size in sizes if isinstance(size, int))
    measured = [size for size in sizes if not isinstance(size, int)]
    return reduce(op.Mul, measured, op.const([known])) if measured else known


def _value(op: Emitter, size: Size) -> Value:
    return op.const([size]) if isinstance(size, int) else size


def _known(size: Size) -> int:
    return size if isinstance(size, int) else -1
