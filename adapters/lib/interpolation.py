# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample written out: for when the other side of a boundary has no such mode. Used by `resize`.

Along one axis after the other: `nearest` is a Gather, `linear` a weighed sum of two elements, `cubic` of four; a filter
that widens as the image shrinks (`antialias`) is a matrix. Coordinates are single precision, in the order of operations
that runtimes use, so that ties fall the same way. What is known is computed here, nodes are written for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import dtype_name
from onnx_convert.adapters.lib.axes import exchanged, permuted
from onnx_convert.adapters.lib.dtypes import BOOL, FLOATS, INT64, cast, is_integer, largest, lowest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Value
    from onnx_convert.adapters.lib.numbers import Number

SIMPLE: Final = "simple"  # how Upsample and Resize-10 choose the nearest: down when they enlarge, up when they shrink
SPREAD: Final = "the interpolation is written out, may round otherwise, and multiplies infinities by weights of 0"
# The elements around a coordinate, by their distance from the one that is before it.
_AROUND: Final = {"linear": (0, 1), "cubic": (-1, 0, 1, 2)}
# What they weigh: for each power of the coordinate's own distance, from the highest down, a coefficient for each.
_LINEAR: Final = ((-1.0, 1.0), (1.0, 0.0))


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis to resize: its length, the new one, the scale between coordinates, and the part that is looked at.

    All are reals, but for `count`, the new length.
    """

    index: int
    length: Number
    count: Number
    scale: Number
    start: Number
    end: Number

    @property
    def stays(self) -> bool:
        """Whether nothing happens: the scale is known to be 1."""
        return bool(self.scale.number == 1)

    @property
    def last(self) -> Number:
        """The last index."""
        return self.length - 1

    @property
    def new_length(self) -> Number:
        """The new length, as a real."""
        return self.length.numbers.of(self.count)

    @property
    def enlarges(self) -> bool:
        """Whether the scale is known to be 1 or more."""
        return self.scale.number is not None and bool(self.scale.number >= 1)


@dataclass(frozen=True, slots=True)
class Method:
    """The method of interpolation: the attributes of Resize."""

    mode: str
    coordinates: str
    nearest: str = SIMPLE
    cubic: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False

    @property
    def crops(self) -> bool:
        """Whether a part of the input is looked at, so that a scale of 1 changes something too."""
        return self.coordinates == "tf_crop_and_resize"


def resample(node: Node, op: Emitter, x: Value, axes: Sequence[Axis], rank: int, method: Method) -> Value:
    """Writes the node's input, given in that rank, resized along these axes."""
    if method.mode != "nearest":
        if node.dtype(0) not in FLOATS:
            node.refuse("interpolated integers are rounded as the runtime likes", "Cast to float around the node")
        op.equivalent(SPREAD if method.antialias else "the interpolation is written out, and may round otherwise")
    for axis in axes:
        if not axis.stays or method.crops:
            x = _Resampling(node, op, axis, rank, method).along_axis(x)
    return x


@dataclass(frozen=True, slots=True)
class _Resampling:
    """The rewrite of one axis."""

    node: Node
    op: Emitter
    axis: Axis
    rank: int
    method: Method

    @property
    def after(self) -> int:
        """The number of axes that follow."""
        return self.rank - 1 - self.axis.index

    def along_axis(self, x: Value) -> Value:
        """Writes the input resized along the axis."""
        axis, method = self.axis, self.method
        at = _coordinates(axis, method.coordinates)
        if method.antialias and method.mode != "nearest" and not axis.enlarges:
            y = self.filtered(x, at)
        elif method.mode == "nearest":
            y = self.gathered(x, _rounded(at, axis.scale, method.nearest), drop=1)
        else:
            y = self.weighed(x, _clipped(at, axis.last) if method.mode == "linear" else at)
        return self.extrapolated(y, at) if method.crops else y

    def gathered(self, x: Value, index: Number, drop: int | None = None) -> Value:
        """Writes the elements with these indices, moved inside; x does not get the axis `drop` of the indices."""
        indices = index.numbers.to(INT64).of(_clipped(index, self.axis.last))
        indices = indices if drop is None else indices.squeezed(drop)
        return self.op.Gather(x, indices.value, axis=self.axis.index)

    def weighed(self, x: Value, at: Number) -> Value:
        """Writes the sum of the elements around each coordinate, weighed. All are gathered at once, into an axis of
        their own."""
        method, reals, low = self.method, at.numbers, at.floor()
        terms = _LINEAR if method.mode == "linear" else _cubic(method.cubic)
        index, beyond = low + reals.of(_AROUND[method.mode]), at - low
        weights = reals.of(terms[0])
        for term in terms[1:]:
            weights = weights * beyond + reals.of(term)
        if method.exclude_outside:
            weights = _of_inside(weights, index, self.axis.last)
        elements = self.gathered(x, index)
        weighed = self.op.at(7).Mul(elements, self.before_the_others(weights))
        return self.op.at(12).ReduceSum(weighed, axes=[self.axis.index + 1], keepdims=0)

    def before_the_others(self, weights: Number) -> Value:
        """Writes a matrix of weights in the dtype of the input, along axes that the others follow."""
        op, dtype, after = self.op, self.node.dtype(0), self.after
        if weights.known is not None:
            return op.const(weights.known.reshape(*weights.known.shape, *[1] * after), dtype)
        own = cast(op, weights.value, dtype)
        return op.at(12).Unsqueeze(own, axes=list(range(2, after + 2))) if after else own

    def extrapolated(self, y: Value, at: Number) -> Value:
        """Writes a value of its own for what lies outside of the input."""
        op, after = self.op, self.after
        away = (at - _clipped(at, self.axis.last)).abs()
        if away.known is not None:
            if not away.known.any():
                return y
            outside = op.const((away.known > 0).reshape(-1, *[1] * after), BOOL)
        else:
            outside = op.Cast(away.at_most(1).ceil().value, to=BOOL)
            if after == 0:
                outside = op.at(12).Squeeze(outside, axes=[1])
            elif after > 1:
                outside = op.at(12).Unsqueeze(outside, axes=list(range(2, after + 1)))
        return op.at(9).Where(outside, self.beyond(), y)

    def beyond(self) -> Value:
        """Returns the value of what lies outside of the input, a number that its dtype must have."""
        number, dtype = self.method.extrapolation, self.node.dtype(0)
        low, high = (0, 1) if dtype == BOOL else (lowest(dtype), largest(dtype)) if is_integer(dtype) else (1, 0)
        if dtype not in FLOATS and not (number == int(number) and low <= number <= high):
            self.node.refuse(
                f"{dtype_name(dtype)} has no {number:g}, which stands for what lies outside", "use a roi from 0 to 1"
            )
        return self.op.const(number, dtype)

    def filtered(self, x: Value, at: Number) -> Value:
        """Writes a product with a matrix of weights, against aliasing: rows for the output, columns for the input with
        its edges repeated."""
        op, axis, method, reals, dtype = self.op, self.axis, self.method, self.axis.length.numbers, self.node.dtype(0)
        stretch = axis.scale.at_most(1)
        reach = ((1 if method.mode == "linear" else 2) / stretch).ceil() + 1
        index = reals.row(reals.to(INT64).of(axis.length + reach * 2)) - reach
        weights = _kernel((at - index).abs() * stretch, method)
        weights = _of_inside(weights, index, axis.last) if method.exclude_outside else weights / weights.row_sums()
        turned = weights.transposed()
        matrix = turned.in_dtype(dtype)
        extended = self.gathered(x, index, drop=0)
        order = exchanged(axis.index, self.rank - 1, self.rank)
        return permuted(op, extended, order, lambda rows: op.MatMul(rows, matrix))


# ---- coordinates


def _coordinates(axis: Axis, how: str) -> Number:
    """Returns for each element of the output its coordinate in the input, in a column; the formulas of the text, in
    their order."""
    length, scale, reals = axis.length, axis.scale, axis.length.numbers
    number = reals.row(axis.count).transposed()
    if how == "asymmetric":
        return number / scale
    if how in ("align_corners", "tf_crop_and_resize"):
        count, last = axis.new_length, axis.last
        gaps = (count - 1).at_least(1)
        if how == "align_corners":
            return number * last / gaps
        number = number + 0.5 * (2 - count).at_least(0)  # a single element lies halfway
        return axis.start * last + number * (axis.end - axis.start) * last / gaps
    corner = (number + 0.5) / scale
    if how == "tf_half_pixel_for_nn":  # an axis whose scale is 1 stays as it is
        changes = (scale - 1).abs().ceil().at_most(1)
        return corner - (1 - changes) * 0.5
    if how == "half_pixel_symmetric":
        adjustment = axis.new_length / (scale * length)
        return length / 2 * (1 - adjustment) + corner - 0.5
    centre = corner - 0.5
    if how == "pytorch_half_pixel":  # 0 if there is one element
        return centre * (axis.new_length - 1).at_most(1)
    return centre


def _clipped(at: Number, last: Number) -> Number:
    return at.at_least(0).at_most(last)


def _rounded(at: Number, scale: Number, how: str) -> Number:
    """Returns whole coordinates; exact also where a half could not be added without rounding."""
    if how == "floor":
        return at.floor()
    if how == "ceil":
        return at.ceil()
    if how == "round_prefer_floor":
        return (at - 0.5).ceil()
    if how == "round_prefer_ceil":
        return (at - 0.5).floor() + 1
    shrinks = (1 - scale).at_least(0).ceil()
    low = at.floor()
    return low + shrinks * (at.ceil() - low)


# ---- weights


def _cubic(a: float) -> tuple[tuple[float, ...], ...]:
    """Returns what `_LINEAR` holds, for four elements."""
    return (a, a + 2, -a - 2, -a), (-2 * a, -a - 3, 2 * a + 3, a), (a, 0, -a, 0), (0, 1, 0, 0)


def _of_inside(weights: Number, index: Number, last: Number) -> Number:
    """Returns weights whose sum is 1 again without those of indices outside of the input."""
    inside = 1 - (index - _clipped(index, last)).abs().at_most(1)
    weights = weights * inside
    return weights / weights.row_sums()


def _kernel(distance: Number, method: Method) -> Number:
    """Returns the weight at a distance; the two pieces of the cubic one are 0 where they meet and where they end."""
    if method.mode == "linear":
        return (1 - distance).at_least(0)
    a = method.cubic
    near = _polynomial(distance.at_most(1), (a + 2, -a - 3, 0.0, 1.0))
    return near + _polynomial(distance.at_least(1).at_most(2), (a, -5 * a, 8 * a, -4 * a))


def _polynomial(at: Number, terms: Sequence[float]) -> Number:
    """Returns the value of a polynomial, whose coefficients begin with that of the highest power."""
    value = at.numbers.of(terms[0])
    for term in terms[1:]:
        value = value * at + term
    return value
