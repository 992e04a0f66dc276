# SPDX-License-Identifier: Apache-2.0
"""AveragePool, MaxPool, LpPool, GlobalLpPool.

2: `p` of LpPool and GlobalLpPool is an integer, below a float; LpPool needs `kernel_shape`, below it is global without.
7: AveragePool: `count_include_pad`.
8: MaxPool: the output `Indices`, and `storage_order`.
10 (AveragePool, MaxPool), 18 (LpPool): `ceil_mode`.
10 (MaxPool), 18 (LpPool), 19 (AveragePool): `dilations`.
22: inference leaves out windows that would begin in the pads at the end, as runtimes have always done.

`ceil_mode` takes a last window that leaves the padded input, unless it would begin behind the input: longer pads at the
end do just that, whatever the sizes are. SAME pads leave nothing to round.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property, reduce
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.clip import number_like
from onnx_convert.adapters.lib.dtypes import is_integer, lowest
from onnx_convert.adapters.lib.indices import WRITTEN
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import END, count_in_row, known_size, part, reshape
from onnx_convert.adapters.lib.shapes import product as product_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Outcome, Value

    Array = numpy.ndarray[Any, Any]

_SAME: Final = ("SAME_UPPER", "SAME_LOWER")
_ORDER: Final = "the sum over a window may be taken in another order"


class Windows:
    """The places of the windows of a pool, with an entry for each spatial axis.

    `begin` and `end` are the pads; `reach` is the pad at the end with which rounding down finds all windows. They are
    computed at run time where SAME makes them depend on a size that is not known.
    """

    def __init__(self, node: Node, op: Emitter) -> None:
        self.x, self.numbers = node.input(0), Numbers(op)
        self.kernel: list[int] = node.attr("kernel_shape")
        self.axes: Final = range(len(self.kernel))
        self.strides: list[int] = node.attr("strides") or [1 for _ in self.axes]
        self.dilations: list[int] = node.attr("dilations") or [1 for _ in self.axes]
        self.extents: Final = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        self.gaps: Final = [k > 1 and d > 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        self.mode: Final[str] = node.attr("auto_pad")
        self.ceil: Final = bool(node.attr("ceil_mode")) and self.mode not in _SAME
        given = (node.attr("pads") if self.mode == "NOTSET" else None) or [0 for _ in self.axes] * 2
        self._pads = [self.numbers.of(pad) for pad in given]
        fixed = (1 in (self.strides[i], self.extents[i]) or self.known_size(i) is not None for i in self.axes)
        self.known = self.mode not in _SAME or all(fixed)  # the pads

    def size(self, axis: int) -> Number:
        """Returns the size of the input along a spatial axis."""
        return self.numbers.size(self.x, axis + 2)

    def known_size(self, axis: int) -> int | None:
        """Returns the same, None if it is not known."""
        return known_size(self.x, axis + 2)

    @cached_property
    def begin(self) -> list[Number]:
        """The pads before the input."""
        if self.mode not in _SAME:
            return self._pads[: len(self.kernel)]
        return [total - total // 2 if self.mode == "SAME_LOWER" else total // 2 for total in map(self._same, self.axes)]

    @cached_property
    def end(self) -> list[Number]:
        """The pads after the input."""
        if self.mode not in _SAME:
            return self._pads[len(self.kernel) :]
        return [self._same(axis) - self.begin[axis] for axis in self.axes]

    @cached_property
    def reach(self) -> list[Number]:
        """The pads after the input with which rounding down finds all windows, and none that begins in them."""
        return [self._reach(axis) for axis in self.axes] if self.ceil else self.end

    def _reach(self, axis: int) -> Number:
        end, stride, extent, size = self.end[axis], self.strides[axis], self.extents[axis], self.known_size(axis)
        reach = (end + (stride - 1)).at_most(extent - 1)
        if size is None:
            return reach
        spans = [(size + self.begin[axis] + pad - extent) // stride for pad in (end, reach)]
        return end if spans[0].number == spans[1].number else spans[1] * stride + extent - size - self.begin[axis]

    def _same(self, axis: int) -> Number:
        """Returns all that SAME pads on an axis."""
        stride, extent = self.strides[axis], self.extents[axis]
        if 1 in (stride, extent):
            return self.numbers.of(extent - 1)
        size = self.size(axis)
        return ((size.divided_up(stride) - 1) * stride + extent - size).at_least(0)

    @property
    def pads(self) -> list[int]:
        """The known pads that find all windows when their number is rounded down."""
        return [pad.number for pad in (*self.begin, *self.reach)]

    @property
    def counted(self) -> list[Number]:
        """The pads at the end, where they lie within a window."""
        return [end.at_most(reach) for end, reach in zip(self.end, self.reach, strict=True)]

    def padded(self, end: Sequence[Number], value: float = 0.0) -> Windows:
        """Makes the pads before the input, and these at its end, part of it: returns the windows over the result."""
        other = copy(self)
        other.x = _pad(self.numbers.op, self.x, self.begin, end, value)
        zero, other.known = self.numbers.of(0), True
        other.begin = [zero for _ in self.axes]
        other.end = other.reach = [
            zero if reach is pad else reach - pad for reach, pad in zip(self.reach, end, strict=True)
        ]
        return other

    def count(self, axis: int) -> Number:
        """Returns how many windows an axis has."""
        return (self.size(axis) + self.begin[axis] + self.reach[axis] - self.extents[axis]) // self.strides[axis] + 1


def _pad(op: Emitter, x: Value, begin: Sequence[Number], end: Sequence[Number], value: float) -> Value:
    known = [pad.number for pad in (*begin, *end)]
    if None in known:
        return op.at(11).Pad(x, begin[0].numbers.vector([0, 0, *begin, 0, 0, *end]), number_like(op, value, x))
    if not any(known):
        return x
    return op.at(10).Pad(x, pads=[0, 0, *known[: len(begin)], 0, 0, *known[len(begin) :]], value=float(value))


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
        x = _pad(op, x, w.begin, w.reach, 0.0)
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
    x = _pad(op, x, begin, reach, _nothing(w.x))
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
    sizes = [size for size in node.shape(0)[2:] if isinstance(size, int)]
    if len(sizes) < len(w.kernel):
        node.refuse("the indices depend on sizes that are not known", "give the model's inputs shapes", unknown=True)
    weights = [prod(sizes[:i] if node.attr("storage_order") else sizes[i + 1 :]) for i in w.axes]
    elements = list(product(*(range(length) for length in w.kernel)))
    padded = w.padded(w.reach, _nothing(w.x)).x
    taps = (_tap(op, padded, w, dict(enumerate(element))) for element in elements)
    chosen = op.ArgMax(op.Concat(*(op.at(12).Unsqueeze(tap, axes=[0]) for tap in taps), axis=0), axis=0, keepdims=0)
    index = op.Gather(op.const(numpy.multiply(elements, w.dilations) @ weights), chosen, axis=0)
    origins = [numpy.arange(w.count(i).number) * w.strides[i] - w.begin[i].number for i in w.axes]
    for place in _on_a_grid(w, origins, weights):
        index = op.at(7).Add(index, op.const(place))
    skipped = [numpy.maximum(first, first % d) - first for first, d in zip(origins, w.dilations, strict=True)]
    if any(count.any() for count in skipped):
        is_first = op.Gather(op.const([1] + [0] * (len(elements) - 1)), chosen, axis=0)
        for place in _on_a_grid(w, skipped, weights):
            index = op.at(7).Add(index, op.at(7).Mul(is_first, op.const(place)))
    return op.at(7).Add(index, _images(op, w.x, prod(sizes)))


def _on_a_grid(w: Windows, lines: Sequence[Array], weights: Sequence[int]) -> Sequence[Array]:
    """Returns places along each axis such that they are summed up at each window; few windows are summed up here."""
    places = [(line * weights[i]).reshape(_along(w, i)) for i, line in enumerate(lines)]
    return [reduce(numpy.add, places)] if prod(map(len, lines)) <= WRITTEN else places


def _along(w: Windows, axis: int) -> list[int]:
    """Returns the shape in which a vector along a spatial axis broadcasts to the output."""
    return [-1, *[1] * (len(w.kernel) - 1 - axis)]


def _images(op: Emitter, x: Value, size: int) -> Value:
    """Writes the flat index of the first element of each channel: [batch, channels, 1, 1, ...]."""
    batch, channels, *spatial = x.shape or ()
    ones = [1 for _ in spatial]
    if isinstance(batch, int) and isinstance(channels, int):
        return op.const((numpy.arange(batch * channels) * size).reshape(batch, channels, *ones))
    outer = part(op, op.Shape(x), 0, 2)
    starts = op.at(7).Mul(count_in_row(op, product_of(op, outer)), op.const([size]))
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
