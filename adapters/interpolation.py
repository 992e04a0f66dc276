# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample written out: for when the other side of a boundary has no such mode. Used by `resize`.

Along one axis after the other: `nearest` is a Gather, `linear` a weighed sum of two elements, `cubic` of four; a filter
that widens as the image shrinks (`antialias`) is a matrix. Coordinates are single precision, in the order of operations
that runtimes use, so that ties fall the same way. What is known is computed here, nodes are written for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import Value, dtype_number
from onnx_convert.adapters.shapes import BOOL, FLOAT, INT64, count_in_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.adapter import Emitter, Node

    Array = numpy.ndarray[Any, Any]
    Number = Array | Value  # a vector of floats, known or computed at run time

FLOATS: Final = tuple(dtype_number(name) for name in ("float16", "float", "double", "bfloat16"))
SIMPLE: Final = "simple"  # how Upsample and Resize-10 choose the nearest: down when they enlarge, up when they shrink
# The elements around a coordinate, by their distance from the one that is before it.
_AROUND: Final = {"linear": (0, 1), "cubic": (-1, 0, 1, 2)}
# What they weigh: for each power of the coordinate's own distance, from the highest down, a coefficient for each.
_LINEAR: Final = ((-1.0, 1.0), (1.0, 0.0))
_NUMPY: Final = {
    "Add": numpy.add, "Sub": numpy.subtract, "Mul": numpy.multiply, "Div": numpy.divide, "Max": numpy.maximum,
    "Min": numpy.minimum, "Floor": numpy.floor, "Ceil": numpy.ceil, "Abs": numpy.abs,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis to resize: its length, the new one, the scale between coordinates, and the part that is looked at."""

    index: int
    length: Number
    count: int | Value
    scale: Number
    start: Number
    end: Number

    @property
    def stays(self) -> bool:
        """Whether nothing happens: the scale is known to be 1."""
        return not isinstance(self.scale, Value) and bool(self.scale[0] == 1)


@dataclass(frozen=True, slots=True)
class Method:
    """How to interpolate: the attributes of Resize."""

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


def vector(*numbers: float) -> Array:
    """Known numbers to compute with."""
    return numpy.array(numbers, dtype=numpy.float32)


class Calculator:
    """`calc.Add(a, b)`: the outcome of an operator, known if its operands are, else of a node that `op` writes."""

    def __init__(self, op: Emitter) -> None:
        self.op = op
        self._made: dict[tuple[object, ...], Value] = {}

    def once(self, make: Callable[[], Value], *key: object) -> Value:
        """What `make` writes, which is written once for each key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def __getattr__(self, operator: str) -> Callable[..., Number]:
        def calculate(*operands: Number | float) -> Number:
            numbers = [n if isinstance(n, (numpy.ndarray, Value)) else vector(n) for n in operands]
            known = [number for number in numbers if not isinstance(number, Value)]
            if len(known) == len(numbers):
                with numpy.errstate(all="ignore"):  # no number at conversion where there is none at run time
                    result: Array = _NUMPY[operator](*known)
                return result
            written = [n if isinstance(n, Value) else self.op.const(n, FLOAT) for n in numbers]
            write = getattr(self.op.at(8), operator)
            return self.once(lambda: write(*written), operator, *(value.name for value in written))

        return calculate


def whole(op: Emitter, number: Number) -> int | Value:
    """A single whole number as such, or as int64."""
    return op.Cast(number, to=INT64) if isinstance(number, Value) else int(number[0])


def resample(node: Node, calc: Calculator, axes: list[Axis], rank: int, method: Method) -> Value:
    """The node's input, of that rank, resized along the given axes."""
    x = node.input(0)
    if method.mode != "nearest":
        if node.dtype(0) not in FLOATS:
            node.refuse("interpolated integers are rounded as the runtime likes", "Cast to float around the node")
        calc.op.equivalent("the interpolation is written out, and may round otherwise")
    for axis in axes:
        if not axis.stays or method.crops:
            x = _resample_axis(node, calc, x, axis, rank, method)
    return x


def _resample_axis(node: Node, calc: Calculator, x: Value, axis: Axis, rank: int, method: Method) -> Value:
    if method.antialias and method.mode != "nearest" and not _enlarges(axis):
        return _filtered(node, calc, x, axis, rank, method)
    at = _coordinates(calc, axis, method.coordinates)
    last = calc.Sub(axis.length, 1)
    if method.mode == "nearest":
        y = _gather(calc, x, axis, _rounded(calc, at, axis, method.nearest), last, drop=1)
    else:
        within = _clipped(calc, at, last) if method.mode == "linear" else at
        y = _weighed(node, calc, x, axis, rank, within, last, method)
    return _extrapolated(node, calc, y, at, last, rank - 1 - axis.index, method.extrapolation) if method.crops else y


def _enlarges(axis: Axis) -> bool:
    return not isinstance(axis.scale, Value) and bool(axis.scale[0] >= 1)


# ---- coordinates


def _coordinates(calc: Calculator, axis: Axis, how: str) -> Number:
    """For each element of the output its coordinate in the input, in a column; the formulas of the text, in their
    order."""
    length, scale = axis.length, axis.scale
    row, count = _numbers(calc.op, axis.count)
    number = _turned(calc.op, row)
    if how == "asymmetric":
        return calc.Div(number, scale)
    if how in ("align_corners", "tf_crop_and_resize"):
        last, gaps = calc.Sub(length, 1), calc.Max(calc.Sub(count, 1), 1)
        if how == "align_corners":
            return calc.Div(calc.Mul(number, last), gaps)
        single = calc.Max(calc.Sub(2, count), 0)  # 1 if there is one element: it lies halfway
        number = calc.Add(number, calc.Mul(0.5, single))
        width = calc.Mul(calc.Mul(number, calc.Sub(axis.end, axis.start)), last)
        return calc.Add(calc.Mul(axis.start, last), calc.Div(width, gaps))
    corner = calc.Div(calc.Add(number, 0.5), scale)
    if how == "tf_half_pixel_for_nn":  # an axis whose scale is 1 stays as it is
        changes = calc.Min(calc.Ceil(calc.Abs(calc.Sub(scale, 1))), 1)
        return calc.Sub(corner, calc.Mul(calc.Sub(1, changes), 0.5))
    if how == "half_pixel_symmetric":
        adjustment = calc.Div(count, calc.Mul(scale, length))
        offset = calc.Mul(calc.Div(length, 2), calc.Sub(1, adjustment))
        return calc.Sub(calc.Add(offset, corner), 0.5)
    centre = calc.Sub(corner, 0.5)
    if how == "pytorch_half_pixel":  # 0 if there is one element
        return calc.Mul(centre, calc.Min(calc.Sub(count, 1), 1))
    return centre


def _numbers(op: Emitter, count: int | Value) -> tuple[Number, Number]:
    """The row 0, 1, 2 ... and how many."""
    if isinstance(count, int):
        op.subject.limit(count)
        return numpy.arange(count, dtype=numpy.float32)[None], vector(count)
    numbers = count_in_row(op, count)
    return op.Cast(numbers, to=FLOAT), op.Cast(count, to=FLOAT)


def _clipped(calc: Calculator, at: Number, last: Number) -> Number:
    return calc.Min(calc.Max(at, 0), last)


def _rounded(calc: Calculator, at: Number, axis: Axis, how: str) -> Number:
    """Whole coordinates; exact also where a half could not be added without rounding."""
    if how == "floor":
        return calc.Floor(at)
    if how == "ceil":
        return calc.Ceil(at)
    if how == "round_prefer_floor":
        return calc.Ceil(calc.Sub(at, 0.5))
    if how == "round_prefer_ceil":
        return calc.Add(calc.Floor(calc.Sub(at, 0.5)), 1)
    shrinks = calc.Ceil(calc.Max(calc.Sub(1, axis.scale), 0))
    low = calc.Floor(at)
    return calc.Add(low, calc.Mul(shrinks, calc.Sub(calc.Ceil(at), low)))


# ---- elements and weights


def _gather(calc: Calculator, x: Value, axis: Axis, index: Number, last: Number, *, drop: int | None = None) -> Value:
    """The elements with these indices, moved inside; `drop` is an axis of the indices that is not to be one of x."""
    op, near = calc.op, _clipped(calc, index, last)
    if not isinstance(near, Value):
        known = near.astype(numpy.int64)
        return op.Gather(x, op.const(known if drop is None else known.squeeze(drop)), axis=axis.index)
    indices = op.Cast(near, to=INT64)
    return op.Gather(x, indices if drop is None else op.at(12).Squeeze(indices, axes=[drop]), axis=axis.index)


def _weighed(
    node: Node, calc: Calculator, x: Value, axis: Axis, rank: int, at: Number, last: Number, method: Method
) -> Value:
    """The sum of the elements around each coordinate, weighed. All are gathered at once, into an axis of their own."""
    op, low = calc.op, calc.Floor(at)
    steps, terms = _AROUND[method.mode], _LINEAR if method.mode == "linear" else _cubic(method.cubic)
    index, after = calc.Add(low, vector(*steps)), calc.Sub(at, low)
    weights: Number = vector(*terms[0])
    for term in terms[1:]:
        weights = calc.Add(calc.Mul(weights, after), vector(*term))
    if method.exclude_outside:
        weights = calc.Mul(weights, _inside(calc, index, last))
        weights = calc.Div(weights, _row_sums(op, weights))
    elements = _gather(calc, x, axis, index, last)
    weighed = op.at(7).Mul(elements, _along(node, op, weights, rank - 1 - axis.index))
    return op.at(12).ReduceSum(weighed, axes=[axis.index + 1], keepdims=0)


def _row_sums(op: Emitter, weights: Number) -> Number:
    if isinstance(weights, Value):
        return op.at(12).ReduceSum(weights, axes=[1], keepdims=1)
    return weights.sum(1)[:, None]


def _along(node: Node, op: Emitter, weights: Number, after: int) -> Value:
    """Weights in the dtype of the input, along axes that have `after` axes behind them."""
    if not isinstance(weights, Value):
        return op.const(weights.reshape(*weights.shape, *[1] * after), node.dtype(0))
    own = weights if node.dtype(0) == FLOAT else op.Cast(weights, to=node.dtype(0))
    return op.at(12).Unsqueeze(own, axes=list(range(2, after + 2))) if after else own


def _cubic(a: float) -> tuple[tuple[float, ...], ...]:
    """As `_LINEAR`, for four elements."""
    return (a, a + 2, -a - 2, -a), (-2 * a, -a - 3, 2 * a + 3, a), (a, 0, -a, 0), (0, 1, 0, 0)


def _near(a: float) -> tuple[float, ...]:
    """The cubic weight at a distance up to 1: coefficients from the constant one on."""
    return 1.0, 0.0, -a - 3, a + 2


def _far(a: float) -> tuple[float, ...]:
    """The cubic weight at a distance from 1 to 2."""
    return -4 * a, 8 * a, -5 * a, a


def _inside(calc: Calculator, index: Number, last: Number) -> Number:
    """1 for a whole number that is an index of the input, else 0."""
    return calc.Sub(1, calc.Min(calc.Abs(calc.Sub(index, _clipped(calc, index, last))), 1))


def _polynomial(calc: Calculator, at: Number, terms: tuple[float, ...]) -> Number:
    value: Number = vector(terms[-1])
    for term in reversed(terms[:-1]):
        value = calc.Add(calc.Mul(value, at), term)
    return value


def _extrapolated(node: Node, calc: Calculator, y: Value, at: Number, last: Number, after: int, value: float) -> Value:
    """What lies outside of the input gets a value of its own."""
    op = calc.op
    away = calc.Abs(calc.Sub(at, _clipped(calc, at, last)))
    if not isinstance(away, Value):
        if not away.any():
            return y
        outside = op.const((away > 0).reshape(-1, *[1] * after), BOOL)
    else:
        outside = op.Cast(op.Ceil(op.at(8).Min(away, op.const([1], FLOAT))), to=BOOL)
        if after == 0:
            outside = op.at(12).Squeeze(outside, axes=[1])
        elif after > 1:
            outside = op.at(12).Unsqueeze(outside, axes=list(range(2, after + 1)))
    return op.at(9).Where(outside, op.const(value, node.dtype(0)), y)


# ---- antialias


def _filtered(node: Node, calc: Calculator, x: Value, axis: Axis, rank: int, method: Method) -> Value:
    """A matrix of weights: rows for the output, columns for the input with its edges repeated."""
    op, stretch, last = calc.op, calc.Min(axis.scale, 1), calc.Sub(axis.length, 1)
    reach = calc.Add(calc.Ceil(calc.Div(1 if method.mode == "linear" else 2, stretch)), 1)
    number, _ = _numbers(op, whole(op, calc.Add(axis.length, calc.Mul(reach, 2))))
    index = calc.Sub(number, reach)
    at = _coordinates(calc, axis, method.coordinates)
    weights = _kernel(calc, calc.Mul(calc.Abs(calc.Sub(at, index)), stretch), method)
    if method.exclude_outside:
        weights = calc.Mul(weights, _inside(calc, index, last))
    weights = calc.Div(weights, _row_sums(op, weights))
    swap = [*range(axis.index), rank - 1, *range(axis.index + 1, rank - 1), axis.index]
    extended = _gather(calc, x, axis, index, last, drop=0)
    moved = extended if axis.index == rank - 1 else op.Transpose(extended, perm=swap)
    turned = _turned(op, weights)
    matrix = turned if isinstance(turned, Value) else op.const(turned, node.dtype(0))
    matrix = matrix if matrix.dtype == node.dtype(0) else op.Cast(matrix, to=node.dtype(0))
    product = op.MatMul(moved, matrix)
    return product if axis.index == rank - 1 else op.Transpose(product, perm=swap)


def _turned(op: Emitter, matrix: Number) -> Number:
    return op.Transpose(matrix, perm=[1, 0]) if isinstance(matrix, Value) else matrix.T


def _kernel(calc: Calculator, distance: Number, method: Method) -> Number:
    """The weight at a distance; the two pieces of the cubic one are 0 where they meet and where they end."""
    if method.mode == "linear":
        return calc.Max(calc.Sub(1, distance), 0)
    near = _polynomial(calc, calc.Min(distance, 1), _near(method.cubic))
    return calc.Add(near, _polynomial(calc, calc.Min(calc.Max(distance, 1), 2), _far(method.cubic)))
