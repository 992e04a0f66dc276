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
from onnx_convert.adapters.lib.indices import fixed, into
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Value
    from onnx_convert.adapters.lib.numbers import Number

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
        """Returns numbers of the kernel's elements, before as many axes as the image has."""
        return numbers.reshape(-1, *[1] * self.axes)


@downgrade("DeformConv", at=19)
def gather_around_moved_points(node: Node, op: Emitter) -> Value:
    """For each group of offsets, kernel element and output place the point in the image; the elements around it, each
    times its nearness; the columns of an ordinary convolution."""
    kernel, dtype = _kernel(node), node.dtype(0)
    op.large(f"a Gather for each of the {2**kernel.axes} neighbours of every point")
    op.equivalent("the interpolation is written out, and may round otherwise")
    work = working_dtype(dtype)
    numbers = Numbers(op)
    y = _multiplied(node, numbers, kernel, _columns(node, numbers, kernel, work), work)
    bias = node.optional_input(_BIAS)
    if bias is not None:
        y = op.Add(y, op.Reshape(cast(op, bias, work), op.const([kernel.filters, *[1] * kernel.axes])))
    return cast(op, y, dtype)


def _kernel(node: Node) -> _Kernel:
    shape, groups = fixed(node.shape(1)), node.attr("group")
    if shape is None:
        node.refuse("the shape of the weights is not known", "give the weights a shape", unknown=True)
    return _Kernel(shape[2:], shape[1] * groups, shape[0], groups, node.attr("offset_group"))


def _columns(node: Node, numbers: Numbers, kernel: _Kernel, dtype: int) -> Value:
    """Writes what each kernel element sees: [batch, offset groups * elements, places..., channels of an offset
    group]."""
    op, around = numbers.op, [0, 0, *[_MARGIN] * kernel.axes]
    image = op.Pad(cast(op, node.input(0), dtype), op.const([*around, *around]))
    sizes = [numbers.size(image, axis) for axis in range(2, kernel.axes + 2)]
    pixels = _product(numbers, sizes)
    starts = _starts(numbers, kernel, image, pixels)
    taps = [_taps(node, numbers, kernel, axis, sizes, dtype) for axis in range(kernel.axes)]
    each = kernel.channels // kernel.offset_groups
    blocks = op.Reshape(image, numbers.vector([0, kernel.offset_groups, each, pixels]))
    elements = op.Reshape(op.Transpose(blocks, perm=[0, 1, 3, 2]), op.const([-1, each]))
    mask = node.optional_input(_MASK)
    masks = [] if mask is None else [cast(op, mask, dtype)]
    seen = []
    for corner in product(*taps):
        place = reduce(op.Add, [*starts, *(place for place, _ in corner)])
        weight = reduce(op.Mul, [*masks, *(nearness for _, nearness in corner)])
        seen.append(op.Mul(op.Gather(elements, place, axis=0), op.Unsqueeze(weight, op.const([-1]))))
    return reduce(op.Add, seen)


def _product(numbers: Numbers, sizes: Sequence[Number]) -> Number:
    return reduce(lambda one, other: one * other, sizes, numbers.of(1))


def _starts(numbers: Numbers, kernel: _Kernel, image: Value, pixels: Number) -> list[Value]:
    """Writes where the elements of each image begin, and in it those of each group of channels."""
    starts, batch = [], numbers.size(image, 0)
    if batch.number != 1:
        starts.append((numbers.up_to(batch) * (pixels * kernel.offset_groups)).along(0, kernel.axes + 2))
    if kernel.offset_groups > 1:
        group = kernel.column(numpy.repeat(numpy.arange(kernel.offset_groups), kernel.elements))
        starts.append(numbers.of(group) * pixels)
    return [start.value for start in starts]


def _taps(
    node: Node, numbers: Numbers, kernel: _Kernel, axis: int, sizes: Sequence[Number], dtype: int
) -> list[tuple[Value, Value]]:
    """Writes for the points along one axis the places of the elements before and after, and how near each is: both
    [batch, offset groups * elements, places...]."""
    op, offset, reals = numbers.op, node.input(_OFFSET), numbers.to(working_dtype(node.dtype(_OFFSET)))
    node.limit(*kernel.sizes, kernel.offset_groups)
    channels = numpy.arange(kernel.offset_groups * kernel.elements) * kernel.axes + axis
    moved = cast(op, op.Gather(offset, op.const(channels), axis=1), reals.dtype)
    point = op.Add(moved, reals.of(_unmoved(node, numbers, kernel, axis)).value)
    point = op.Min(op.Max(point, op.const([0], reals.dtype)), reals.of(sizes[axis] - _MARGIN).value)
    before = op.Floor(point)
    after, place = cast(op, op.Sub(point, before), dtype), op.Cast(before, to=INT64)
    step = _product(numbers, sizes[axis + 1 :]).value
    if axis < kernel.axes - 1:
        place = op.Mul(place, step)
    return [(place, op.Sub(op.const([1], dtype), after)), (op.Add(place, step), after)]


def _unmoved(node: Node, numbers: Numbers, kernel: _Kernel, axis: int) -> Number:
    """Returns where the points along one axis are without offsets, counted from the margin."""
    stride, dilation = ((node.attr(name) or [1] * kernel.axes)[axis] for name in ("strides", "dilations"))
    begin = _MARGIN - (node.attr("pads") or [0] * kernel.axes)[axis]
    element = numpy.tile(numpy.indices(kernel.sizes)[axis].ravel(), kernel.offset_groups)
    steps = numbers.up_to(numbers.size(node.input(_OFFSET), axis + 2)) * stride
    return steps.along(axis, kernel.axes) + kernel.column(element * dilation + begin)


def _multiplied(node: Node, numbers: Numbers, kernel: _Kernel, columns: Value, dtype: int) -> Value:
    """Writes the weights times what they see, summed over kernel elements and channels of each group."""
    op, groups, offset = numbers.op, kernel.groups, node.input(_OFFSET)
    each, inner = kernel.channels // kernel.offset_groups, kernel.channels // groups * kernel.elements
    count = _product(numbers, [numbers.size(offset, axis + 2) for axis in range(kernel.axes)])
    spread = op.Reshape(columns, numbers.vector([0, kernel.offset_groups, kernel.elements, count, each]))
    turned = op.Transpose(spread, perm=[0, 1, 4, 2, 3])
    weights = op.Reshape(cast(op, node.input(1), dtype), op.const([groups, kernel.filters // groups, inner]))
    y = op.MatMul(weights, op.Reshape(turned, numbers.vector([0, groups, inner, count])))
    sizes = offset.shape
    target = None if sizes is None else (sizes[0], kernel.filters, *sizes[2:])

    def measured() -> Value:
        shape = numbers.shape(offset)
        return op.Concat(part(op, shape, 0, 1), op.const([kernel.filters]), part(op, shape, 2), axis=0)

    return into(op, y, target, measured)
