# SPDX-License-Identifier: Apache-2.0
"""AveragePool, MaxPool, LpPool, GlobalLpPool.

2: `p` of LpPool and GlobalLpPool is an integer, below a float; LpPool needs `kernel_shape`, below it is global without.
7: AveragePool: `count_include_pad`.
8: MaxPool: the output `Indices`, and `storage_order`.
10 (AveragePool, MaxPool), 18 (LpPool): `ceil_mode`.
10 (MaxPool), 18 (LpPool), 19 (AveragePool): `dilations`.
22: inference leaves out windows that would begin in the pads at the end, as runtimes have always done.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import is_integer, lowest
from onnx_convert.adapters.lib.indices import WRITTEN
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import END, count_in_row, part, reshape
from onnx_convert.adapters.lib.shapes import product as product_of
from onnx_convert.adapters.lib.windows import Windows, pad_spatial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Outcome, Value


_ORDER: Final = "the sum over a window may be taken in another order"


def _round_down(node: Node, op: Emitter, w: Windows, *drop: str) -> Outcome:
    """Writes the pool itself without `ceil_mode`. Pads that count in an average become part of the input first, as what
    is added must not."""
    if not w.ceil or [pad.number for pad in w.reach] == [pad.number for pad in w.end]:
        return op.same(drop=("ceil_mode", *drop))
    if not node.attr("count_include_pad"):
        return op.same(drop=("ceil_mode", "auto_pad", *drop), pads=w.pads)
    inner = w.padded(w.counted)
    return op.same(inner.x, drop=("ceil_mode", "auto_pad", "count_include_pad"), pads=inner.pads)


@downgrade("AveragePool", "LpPool", "MaxPool", at=22)
def no_window_in_the_pads(node: Node, op: Emitter) -> Outcome:
    """Where older inference would count such a window too, pads that leave no room for it replace `ceil_mode`. Runtimes
    load no pads as long as the kernel: where gaps need them, the pool is written out."""
    if not node.attr("ceil_mode"):
        return op.same()
    w = Windows(node, op)
    if not w.ceil:
        skips = any(stride > extent for stride, extent in zip(w.strides, w.extents, strict=True))
        return _round_down(node, op, w) if skips else op.same()
    if not any(_may_count_one_more(w, axis) for axis in w.axes):
        return op.same()
    if all(pad < length for pad, length in zip(w.pads, w.kernel * 2, strict=True)):
        return _round_down(node, op, w)
    return _WITHOUT_GAPS[node.operator](node, op, w)


def _may_count_one_more(w: Windows, axis: int) -> bool:
    """Returns whether rounding up may count a window that begins in the pads at the end."""
    stride, extent, end, size = w.strides[axis], w.extents[axis], w.end[axis], w.known_size(axis)
    if size is None:
        return bool((end + (stride - 1)).number > w.reach[axis].number)
    up = (size + w.begin[axis] + end - extent).divided_up(stride) + 1
    return up.number != w.count(axis).number


# ---- AveragePool


@downgrade("AveragePool", at=19)
def average_by_convolution(node: Node, op: Emitter) -> Outcome:
    """With gaps the average is a convolution, corrected where a window holds fewer elements than the kernel."""
    w = Windows(node, op)
    return _average(node, op, w) if any(w.gaps) else op.same(drop=("dilations",))


def _average(node: Node, op: Emitter, w: Windows) -> Value:
    op.equivalent(_ORDER)
    dtype, share, inside = node.dtype(0), 1 / prod(w.kernel), node.attr("count_include_pad")
    if inside and w.ceil:  # what `ceil_mode` adds does not count, pads do
        w, inside = w.padded(w.counted), 0
    y = _convolve(node, op, w.x, share, w)
    if inside or (w.known and not any(w.pads)):
        return y
    sizes = [w.known_size(axis) for axis in w.axes]
    if not w.known or None in sizes:
        ones = op.at(8).Expand(op.const([1], dtype), op.Concat(op.const([1, 1]), part(op, op.Shape(w.x), 2), axis=0))
        return op.Div(y, _convolve(node, op, ones, share, w))
    for axis in w.axes:
        factors = [w.kernel[axis] / max(count, 1) for count in _filled(w, axis)]
        if set(factors) != {1.0}:
            y = op.Mul(y, op.const(numpy.reshape(factors, _along(w, axis)), dtype))
    return y


def _filled(w: Windows, axis: int) -> list[int]:
    """Returns how many elements of the input each window of an axis holds, if its size is known."""
    steps, size = range(0, w.extents[axis], w.dilations[axis]), w.size(axis).number
    starts = [index * w.strides[axis] - w.begin[axis].number for index in range(w.count(axis).number)]
    return [sum(0 <= start + step < size for step in steps) for start in starts]


def _convolve(node: Node, op: Emitter, x: Value, weight: float, w: Windows) -> Value:
    """Writes the sum over each window of each channel, times a weight."""
    spread: dict[str, Any] = {"kernel_shape": w.kernel, "strides": w.strides, "dilations": w.dilations}
    if w.known:
        spread["pads"] = w.pads
    elif any(w.gaps):  # with which runtimes find no pads
        x = pad_spatial(op, x, w.begin, w.reach, 0.0)
    else:
        spread["auto_pad"] = w.mode
    dtype, channels = node.dtype(0), x.shape[1] if x.shape is not None else None
    if isinstance(channels, int) and channels:
        weights = op.const(numpy.full((channels, 1, *w.kernel), weight), dtype)
        return op.Conv(x, weights, group=channels, **spread)
    shape = op.Shape(x)
    apart = reshape(op, x, op.Concat(product_of(op, part(op, shape, 0, 2)), op.const([1]), part(op, shape, 2), axis=0))
    y = op.Conv(apart, op.const(numpy.full((1, 1, *w.kernel), weight), dtype), **spread)
    return reshape(op, y, op.Concat(part(op, shape, 0, 2), part(op, op.Shape(y), 2), axis=0))


@downgrade("AveragePool", at=10)
def average_rounding_down(node: Node, op: Emitter) -> Outcome:
    """Longer pads at the end take the place of `ceil_mode`."""
    return _round_down(node, op, Windows(node, op))


@downgrade("AveragePool", at=7)
def average_padded_input(node: Node, op: Emitter) -> Value:
    """Pads that count become part of the input."""
    if not node.attr("count_include_pad"):
        return op.same(drop=("count_include_pad",))
    w = Windows(node, op)
    if not w.known:  # the pads depend on a size that is not known, but Conv knows how to find them
        op.equivalent(_ORDER)
        return _convolve(node, op, w.x, 1 / prod(w.kernel), w)
    return op.same(w.padded(w.end).x, drop=("count_include_pad", "auto_pad", "pads"))


# ---- MaxPool


@downgrade("MaxPool", at=10)
def maximum_of_taps(node: Node, op: Emitter) -> Outcome:
    """Longer pads at the end take the place of `ceil_mode`; with gaps it is the maximum of strided slices."""
    w = Windows(node, op)
    return _maximum_and_indices(node, op, w) if any(w.gaps) else _round_down(node, op, w, "dilations")


def _maximum_and_indices(node: Node, op: Emitter, w: Windows) -> Outcome:
    maximum = _maximum(op, w)
    return (maximum, _indices(node, op, w)) if node.uses_output(1) else maximum


def _maximum(op: Emitter, w: Windows) -> Value:
    """Pools axes one after the other, as a window is a box: first all without gaps, by MaxPool."""
    if not w.known:
        w = w.padded(w.reach, _nothing(w.x))
    zero, gaps = w.numbers.of(0), w.gaps
    if not all(gaps):
        x = op.same(
            w.x,
            drop=("ceil_mode", "dilations", "auto_pad", "storage_order"),
            outputs=1,
            kernel_shape=[1 if gap else length for gap, length in zip(gaps, w.kernel, strict=True)],
            strides=[1 if gap else stride for gap, stride in zip(gaps, w.strides, strict=True)],
            pads=[0 if gap else pad for gap, pad in zip(gaps * 2, w.pads, strict=True)],
        )
    else:
        x = w.x
    begin, reach = ([pad if gap else zero for gap, pad in zip(gaps, pads, strict=True)] for pads in (w.begin, w.reach))
    x = pad_spatial(op, x, begin, reach, _nothing(w.x))
    for axis in (i for i, gap in enumerate(gaps) if gap):
        x = op.Max(*(_tap(op, x, w, {axis: element}) for element in range(w.kernel[axis])))
    return x


def _nothing(x: Value) -> float:
    """Returns what no element of a value is below."""
    return lowest(x.dtype) if x.dtype and is_integer(x.dtype) else -inf


def _tap(op: Emitter, x: Value, w: Windows, elements: dict[int, int]) -> Value:
    """Writes the given element of every window, by axis; of a padded input."""
    axes, strides = [axis + 2 for axis in elements], [w.strides[axis] for axis in elements]
    starts = [element * w.dilations[axis] for axis, element in elements.items()]
    ends = [start - w.extents[axis] + 1 or END for axis, start in zip(elements, starts, strict=True)]
    if set(strides) == {1}:
        return op.at(9).Slice(x, axes=axes, starts=starts, ends=ends)
    return op.at(10).Slice(x, op.const(starts), op.const(ends), op.const(axes), op.const(strides))


@downgrade("MaxPool", at=8)
def maximum_with_indices(node: Node, op: Emitter) -> Outcome:
    """Indices that have no name need nothing; others are found by ArgMax over the elements of each window."""
    values = op.same(drop=("storage_order",), outputs=1)
    return (values, _indices(node, op, Windows(node, op))) if node.uses_output(1) else values


def _indices(node: Node, op: Emitter, w: Windows) -> Value:
    """Writes the flat index of each maximum: that of the window's origin, and how far the chosen element is from it.

    ArgMax takes the first of equal elements. It is in the pads only if no element of the window is above their value,
    and then it is the very first: the first one that is in the input takes its place.
    """
    numbers, sizes = w.numbers, [w.size(axis) for axis in w.axes]
    weights = [_product(numbers, sizes[:i] if node.attr("storage_order") else sizes[i + 1 :]) for i in w.axes]
    elements = list(product(*(range(length) for length in w.kernel)))
    padded = w.padded(w.reach, _nothing(w.x)).x
    taps = (_tap(op, padded, w, dict(enumerate(element))) for element in elements)
    chosen = op.ArgMax(op.Concat(*(op.at(12).Unsqueeze(tap, axes=[0]) for tap in taps), axis=0), axis=0, keepdims=0)
    steps = [numbers.of(column) * weight for column, weight in zip(_columns(elements, w), weights, strict=True)]
    index = op.Gather(reduce(Number.__add__, steps).value, chosen, axis=0)
    origins = [(0 - w.begin[i]).range(w.count(i), w.strides[i]) for i in w.axes]
    for place in _on_a_grid(w, origins, weights):
        index = op.at(7).Add(index, place.value)
    skipped = [
        (first.at_least(first % step if step > 1 else 0) - first).whole()
        for first, step in zip(origins, w.dilations, strict=True)
    ]
    if any(count.known is None or count.known.any() for count in skipped):
        is_first = op.Gather(op.const([1] + [0] * (len(elements) - 1)), chosen, axis=0)
        for place in _on_a_grid(w, skipped, weights):
            index = op.at(7).Add(index, op.at(7).Mul(is_first, place.value))
    return op.at(7).Add(index, _images(op, w, _product(numbers, sizes)))


def _product(numbers: Numbers, sizes: Sequence[Number]) -> Number:
    return reduce(Number.__mul__, sizes, numbers.of(1))


def _columns(elements: Sequence[tuple[int, ...]], w: Windows) -> Sequence[list[int]]:
    """Returns how far each element of a window is from its origin, for each axis."""
    return [[element[i] * w.dilations[i] for element in elements] for i in w.axes]


def _on_a_grid(w: Windows, lines: Sequence[Number], weights: Sequence[Number]) -> Sequence[Number]:
    """Returns places along each axis such that they are summed up at each window; few windows are summed up here."""
    places = [(line * weights[i]).along(i, len(w.kernel)) for i, line in enumerate(lines)]
    known = [place.known for place in places if place.known is not None]
    if len(known) == len(places) and prod(array.size for array in known) <= WRITTEN:
        return [reduce(Number.__add__, places)]
    return [place for place in places if place.known is None or place.known.any()]


def _along(w: Windows, axis: int) -> list[int]:
    """Returns the shape in which a vector along a spatial axis broadcasts to the output."""
    return [-1, *[1] * (len(w.kernel) - 1 - axis)]


def _images(op: Emitter, w: Windows, size: Number) -> Value:
    """Writes the flat index of the first element of each channel: [batch, channels, 1, 1, ...]."""
    batch, channels = (w.x.shape or (None, None))[:2]
    ones = [1 for _ in w.axes]
    if isinstance(batch, int) and isinstance(channels, int) and size.number is not None:
        return op.const((numpy.arange(batch * channels) * size.number).reshape(batch, channels, *ones))
    outer = part(op, w.numbers.shape(w.x), 0, 2)
    starts = op.at(7).Mul(count_in_row(op, product_of(op, outer)), size.value)
    return reshape(op, starts, op.Concat(outer, op.const(ones), axis=0))


# ---- LpPool


@downgrade("LpPool", at=18)
def norm_by_convolution(node: Node, op: Emitter) -> Outcome:
    """Longer pads at the end take the place of `ceil_mode`; with gaps the sum of the powers is a convolution."""
    w = Windows(node, op)
    return _norm(node, op, w) if any(w.gaps) else _round_down(node, op, w, "dilations")


def _norm(node: Node, op: Emitter, w: Windows) -> Value:
    op.equivalent(_ORDER)
    p = node.attr("p")
    return _roots(node, op, _convolve(node, op, _powers(node, op, p), 1.0, w), p)


_WITHOUT_GAPS: Final = {"AveragePool": _average, "LpPool": _norm, "MaxPool": _maximum_and_indices}


def _powers(node: Node, op: Emitter, p: float) -> Value:
    x = node.input(0)
    if p == 2:
        return op.at(7).Mul(x, x)
    return op.Abs(x) if p == 1 else op.at(7).Pow(op.Abs(x), op.const(p, node.dtype(0)))


def _roots(node: Node, op: Emitter, sums: Value, p: float) -> Value:
    if p == 2:
        return op.Sqrt(sums)
    return sums if p == 1 else op.at(7).Pow(sums, op.const(1 / p, node.dtype(0)))


@upgrade("LpPool", "GlobalLpPool", at=2)
def integral_exponent(node: Node, op: Emitter) -> Value:
    """2.0 becomes 2; the norm of a broken exponent is a root of the sum of powers. No kernel: the pool is global."""
    p, whole = node.attr("p"), not node.has("kernel_shape")
    operator, drop = ("GlobalLpPool", ("auto_pad", "pads", "strides")) if whole else ("", ())
    if p == int(p):
        return op.same(operator=operator, drop=drop, p=int(p) if node.has("p") else None)
    op.equivalent("a broken power is taken before and after the sum")
    return _roots(node, op, op.same(_powers(node, op, p), operator=operator, drop=drop, p=1), p)


@downgrade("LpPool", "GlobalLpPool", at=2)
def real_exponent(node: Node, op: Emitter) -> Value:
    """2 becomes 2.0."""
    return op.same(p=float(node.attr("p")) if node.has("p") else None)
