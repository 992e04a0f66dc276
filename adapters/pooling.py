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

from dataclasses import dataclass
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Final

import numpy

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import is_integer, lowest
from onnx_convert.adapters.lib.shapes import END, count_in_row, part, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import At, Emitter, Node, Value

_SAME: Final = ("SAME_UPPER", "SAME_LOWER")
_ORDER: Final = "the sum over a window may be taken in another order"


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows of a pool lie, a number for each spatial axis.

    `begin` and `end` are the pads; `reach` is the pad at the end with which rounding down finds all windows. They are
    empty, and `known` is False, where SAME makes them depend on a size that is not known.
    """

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    begin: list[int]
    end: list[int]
    reach: list[int]

    @property
    def known(self) -> bool:
        """Whether the pads are known."""
        return bool(self.begin)

    @property
    def extents(self) -> list[int]:
        """How many elements a window spans."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def dilated(self) -> list[bool]:
        """Which axes have gaps between the elements of a window."""
        return [k > 1 and d > 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def pads(self) -> list[int]:
        """The pads that find all windows when their number is rounded down."""
        return [*self.begin, *self.reach]

    @property
    def counted(self) -> list[int]:
        """The pads at the end, where they lie within a window."""
        return [min(pair) for pair in zip(self.end, self.reach, strict=True)]

    def over_padded(self) -> Windows:
        """The same windows over an input that the pads at its beginning, and those counted at its end, are part of."""
        beyond = [reach - pad for reach, pad in zip(self.reach, self.counted, strict=True)]
        return Windows(self.kernel, self.strides, self.dilations, [0] * len(beyond), beyond, beyond)

    def count(self, axis: int, size: int) -> int:
        """How many windows an axis of that size has."""
        return (size + self.begin[axis] + self.reach[axis] - self.extents[axis]) // self.strides[axis] + 1


def _windows(node: Node) -> Windows:
    kernel: list[int] = node.attr("kernel_shape")
    axes = range(len(kernel))
    strides: list[int] = node.attr("strides") or [1 for _ in axes]
    dilations: list[int] = node.attr("dilations") or [1 for _ in axes]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    mode = node.attr("auto_pad")
    if mode in _SAME:
        totals = [_same(node, i, strides[i], extents[i]) for i in axes]
        known = [total for total in totals if total is not None]
        if len(known) < len(totals):
            return Windows(kernel, strides, dilations, [], [], [])
        begin = [total // 2 if mode == "SAME_UPPER" else total - total // 2 for total in known]
        end = [total - first for total, first in zip(known, begin, strict=True)]
        return Windows(kernel, strides, dilations, begin, end, end)
    pads: list[int] = (node.attr("pads") if mode == "NOTSET" else None) or [0 for _ in axes] * 2
    begin, end = pads[: len(kernel)], pads[len(kernel) :]
    reach = [min(end[i] + strides[i] - 1, extents[i] - 1) for i in axes] if node.attr("ceil_mode") else end
    return Windows(kernel, strides, dilations, begin, end, reach)


def _same(node: Node, axis: int, stride: int, extent: int) -> int | None:
    """All that SAME pads on one axis."""
    if stride == 1 or extent == 1:
        return extent - 1
    size = _sizes(node)[axis]
    return max((-(-size // stride) - 1) * stride + extent - size, 0) if size is not None else None


def _sizes(node: Node) -> list[int | None]:
    """The spatial sizes of the input, None for each that is not known."""
    shape = node.input(0).shape
    known = shape[2:] if shape is not None else [None for _ in node.attr("kernel_shape")]
    return [size if isinstance(size, int) else None for size in known]


def _pad(op: Emitter | At, x: Value, begin: list[int], end: list[int], value: float = 0.0) -> Value:
    if not any((*begin, *end)):
        return x
    return op.Pad(x, pads=[0, 0, *begin, 0, 0, *end], value=float(value))


def _round_down(node: Node, op: Emitter, w: Windows, drop: tuple[str, ...] = ()) -> Value:
    """The pool itself without `ceil_mode`."""
    if not w.known or w.reach == w.end:
        return op.same(drop=("ceil_mode", *drop))
    return op.same(drop=("ceil_mode", "auto_pad", *drop), pads=w.pads)


def _round_average_down(node: Node, op: Emitter, w: Windows) -> Value:
    """The same for an average; pads that count become part of the input first, as what is added must not count."""
    if not w.known or w.reach == w.end or not node.attr("count_include_pad"):
        return _round_down(node, op, w)
    padded = _pad(op.at(10), node.input(0), w.begin, w.counted)
    return op.same(padded, drop=("ceil_mode", "auto_pad", "count_include_pad"), pads=w.over_padded().pads)


@downgrade("AveragePool", "LpPool", "MaxPool", at=22)
def no_window_in_the_pads(node: Node, op: Emitter) -> Value:
    """Where older inference would count such a window too, pads that leave no room for it replace `ceil_mode`."""
    if not node.attr("ceil_mode"):
        return op.same()
    w = _windows(node)
    beyond = any(reach < end + stride - 1 for reach, end, stride in zip(w.reach, w.end, w.strides, strict=False))
    skips = any(stride > extent for stride, extent in zip(w.strides, w.extents, strict=True))
    if not (skips if node.attr("auto_pad") in _SAME else beyond):
        return op.same()
    return _round_average_down(node, op, w) if node.operator == "AveragePool" else _round_down(node, op, w)


# ---- AveragePool


@downgrade("AveragePool", at=19)
def average_by_convolution(node: Node, op: Emitter) -> Value:
    """With gaps the average is a convolution, corrected where a window holds fewer elements than the kernel."""
    if not node.has("dilations"):
        return op.same()
    w = _windows(node)
    if not any(w.dilated):
        return op.same(drop=("dilations",))
    op.equivalent(_ORDER)
    x, dtype, kernel, inside = node.input(0), node.dtype(0), w.kernel, node.attr("count_include_pad")
    sizes = _sizes(node)
    if inside and w.reach != w.end and w.known:  # what `ceil_mode` adds does not count, pads do
        x = _pad(op.at(10), x, w.begin, w.counted)
        sizes = [None if size is None else size + b + e for size, b, e in zip(sizes, w.begin, w.counted, strict=True)]
        w, inside = w.over_padded(), 0
    y = _convolve(node, op, x, 1 / prod(kernel), w)
    if inside or (w.known and not any(w.pads)):
        return y
    if not w.known or None in sizes:
        ones = op.at(8).Expand(op.const([1], dtype), op.Concat(op.const([1, 1]), part(op, op.Shape(x), 2), axis=0))
        return op.Div(y, _convolve(node, op, ones, 1 / prod(kernel), w))
    for axis, size in enumerate(size for size in sizes if size is not None):
        factors = [w.kernel[axis] / max(count, 1) for count in _filled(w, axis, size)]
        if set(factors) != {1.0}:
            after = len(kernel) - 1 - axis
            y = op.Mul(y, op.const(numpy.reshape(factors, (-1, *[1] * after)), dtype))
    return y


def _filled(w: Windows, axis: int, size: int) -> list[int]:
    """How many elements of the input each window of an axis holds."""
    starts = [index * w.strides[axis] - w.begin[axis] for index in range(w.count(axis, size))]
    steps = range(0, w.extents[axis], w.dilations[axis])
    return [sum(0 <= start + step < size for step in steps) for start in starts]


def _convolve(node: Node, op: Emitter, x: Value, weight: float, w: Windows) -> Value:
    """The sum over each window of each channel, times a weight."""
    spread = {"kernel_shape": w.kernel, "strides": w.strides, "dilations": w.dilations}
    spread |= {"auto_pad": node.attr("auto_pad")} if not w.known else {"pads": w.pads}
    dtype, channels = node.dtype(0), x.shape[1] if x.shape is not None else None
    if isinstance(channels, int) and channels:
        weights = op.const(numpy.full((channels, 1, *w.kernel), weight), dtype)
        return op.Conv(x, weights, group=channels, **spread)
    shape = op.Shape(x)
    outer = op.at(10).ReduceProd(part(op, shape, 0, 2), axes=[0], keepdims=1)
    apart = reshape(op, x, op.Concat(outer, op.const([1]), part(op, shape, 2), axis=0))
    y = op.Conv(apart, op.const(numpy.full((1, 1, *w.kernel), weight), dtype), **spread)
    return reshape(op, y, op.Concat(part(op, shape, 0, 2), part(op, op.Shape(y), 2), axis=0))


@downgrade("AveragePool", at=10)
def average_rounding_down(node: Node, op: Emitter) -> Value:
    """Longer pads at the end take the place of `ceil_mode`."""
    return _round_average_down(node, op, _windows(node)) if node.attr("ceil_mode") else op.same(drop=("ceil_mode",))


@downgrade("AveragePool", at=7)
def average_padded_input(node: Node, op: Emitter) -> Value:
    """Pads that count become part of the input."""
    if not node.attr("count_include_pad"):
        return op.same(drop=("count_include_pad",))
    w = _windows(node)
    if not w.known:  # the pads depend on a size that is not known, but Conv knows how to find them
        op.equivalent(_ORDER)
        return _convolve(node, op, node.input(0), 1 / prod(w.kernel), w)
    return op.same(_pad(op, node.input(0), w.begin, w.end), drop=("count_include_pad", "auto_pad", "pads"))


# ---- MaxPool


@downgrade("MaxPool", at=10)
def maximum_of_taps(node: Node, op: Emitter) -> Value | tuple[Value, ...]:
    """Longer pads at the end take the place of `ceil_mode`; with gaps it is the maximum of strided slices."""
    if not node.attr("ceil_mode") and not node.has("dilations"):
        return op.same(drop=("ceil_mode",))
    w = _windows(node)
    if not any(w.dilated):
        return _round_down(node, op, w, ("dilations",))
    if not w.known:
        node.refuse("the SAME pads depend on sizes that are not known", "give the model's inputs shapes", unknown=True)
    if node.uses_output(1):
        return _maximum(node, op, w), _indices(node, op, w)
    return _maximum(node, op, w)


def _maximum(node: Node, op: Emitter, w: Windows) -> Value:
    """A window is a box, so that its axes can be pooled one after the other: first all without gaps, by MaxPool."""
    x, gaps = node.input(0), w.dilated

    def only(numbers: list[int], gap: bool, neutral: int) -> list[int]:
        return [number if gaps[i] == gap else neutral for i, number in enumerate(numbers)]

    if not all(gaps):
        pads = only(w.begin, False, 0) + only(w.reach, False, 0)
        x = op.same(
            x,
            drop=("ceil_mode", "dilations", "auto_pad", "storage_order"),
            outputs=1,
            kernel_shape=only(w.kernel, False, 1),
            strides=only(w.strides, False, 1),
            pads=pads,
        )
    x = _pad(op, x, only(w.begin, True, 0), only(w.reach, True, 0), _nothing(node.input(0)))
    for axis in (i for i, gap in enumerate(gaps) if gap):
        x = op.Max(*(_tap(op, x, w, {axis: element}) for element in range(w.kernel[axis])))
    return x


def _nothing(x: Value) -> float:
    """Returns what no element of a value is below."""
    return lowest(x.dtype) if x.dtype and is_integer(x.dtype) else -inf


def _tap(op: Emitter, x: Value, w: Windows, elements: dict[int, int]) -> Value:
    """The given element of every window, by axis; of a padded input."""
    axes, strides = [axis + 2 for axis in elements], [w.strides[axis] for axis in elements]
    starts = [element * w.dilations[axis] for axis, element in elements.items()]
    ends = [start - w.extents[axis] + 1 or END for axis, start in zip(elements, starts, strict=True)]
    if set(strides) == {1}:
        return op.at(9).Slice(x, axes=axes, starts=starts, ends=ends)
    return op.at(10).Slice(x, op.const(starts), op.const(ends), op.const(axes), op.const(strides))


@downgrade("MaxPool", at=8)
def maximum_with_indices(node: Node, op: Emitter) -> Value | tuple[Value, ...]:
    """Indices that nobody asks for need nothing; others are found by ArgMax over the elements of each window."""
    values = op.same(drop=("storage_order",), outputs=1)
    return (values, _indices(node, op, _windows(node))) if node.uses_output(1) else values


def _indices(node: Node, op: Emitter, w: Windows) -> Value:
    """The flat index of each maximum: that of the window's origin, and how far the chosen element lies from it."""
    x, shape = node.input(0), node.shape(0)
    sizes = [size for size in shape[2:] if isinstance(size, int)]
    if len(sizes) < len(w.kernel) or not w.known:
        node.refuse("the indices depend on sizes that are not known", "give the model's inputs shapes", unknown=True)
    axes = range(len(sizes))
    weights = [prod(sizes[:i] if node.attr("storage_order") else sizes[i + 1 :]) for i in axes]
    elements = list(product(*(range(k) for k in w.kernel)))
    padded = _pad(op, x, w.begin, w.reach, _nothing(x))
    taps = [_tap(op, padded, w, dict(enumerate(element))) for element in elements]
    stack = op.Concat(*(op.at(12).Unsqueeze(tap, axes=[0]) for tap in taps), axis=0)
    offsets = [sum(element[i] * w.dilations[i] * weights[i] for i in axes) for element in elements]
    index = op.Gather(op.const(offsets), op.ArgMax(stack, axis=0, keepdims=0), axis=0)
    for i in axes:
        origins = [(number * w.strides[i] - w.begin[i]) * weights[i] for number in range(w.count(i, sizes[i]))]
        index = op.at(7).Add(index, op.const(numpy.reshape(origins, (-1, *[1] * (len(sizes) - 1 - i)))))
    return op.at(7).Add(index, _images(op, x, prod(sizes), len(sizes)))


def _images(op: Emitter, x: Value, size: int, axes: int) -> Value:
    """The flat index of the first element of each channel: [batch, channels, 1, 1, ...]."""
    batch, channels = x.shape[:2] if x.shape is not None else (None, None)
    if isinstance(batch, int) and isinstance(channels, int):
        return op.const((numpy.arange(batch * channels) * size).reshape(batch, channels, *[1] * axes))
    outer = part(op, op.Shape(x), 0, 2)
    count = op.at(10).ReduceProd(outer, axes=[0], keepdims=1)
    starts = op.at(7).Mul(count_in_row(op, count), op.const([size]))
    return reshape(op, starts, op.Concat(outer, op.const([1] * axes), axis=0))


# ---- LpPool


@downgrade("LpPool", at=18)
def norm_by_convolution(node: Node, op: Emitter) -> Value:
    """Longer pads at the end take the place of `ceil_mode`; with gaps the sum of the powers is a convolution."""
    if not node.attr("ceil_mode") and not node.has("dilations"):
        return op.same(drop=("ceil_mode",))
    w = _windows(node)
    if not any(w.dilated):
        return _round_down(node, op, w, ("dilations",))
    op.equivalent(_ORDER)
    p = node.attr("p")
    powers = _powers(node, op, p)
    return _roots(node, op, _convolve(node, op, powers, 1.0, w), p)


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
