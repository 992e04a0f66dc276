# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv.

10: integers of 8 bits are made, and computed with. 11: DynamicQuantizeLinear finds scale and zero point itself.

Sums of products are computed in a float dtype that holds every one of them exactly: in float while they have at most
258 terms (255 * 255 * 258 < 2**24), a convolution of up to 4112 by two, of the low and the high bits of the weights,
and beyond in double.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, DOUBLE, FLOAT, INT32, UINT8, largest, lowest
from onnx_convert.adapters.lib.indices import fixed
from onnx_convert.adapters.lib.shapes import ones_like, part
from onnx_convert.adapters.quantization import QUANTIZED

if TYPE_CHECKING:
    from onnx_convert.adapter import Dim, Emitter, Node, Value

_IN_FLOAT: Final = 258  # products of two numbers of magnitude 255
_IN_TWO_FLOATS: Final = 4112  # products of one such number and one of magnitude 16
_HIGH: Final = 16

# ---- quantizing


@downgrade("QuantizeLinear", at=10)
def round_and_clip(node: Node, op: Emitter) -> Value:
    """The formula of the specification: divide, round to even, add the zero point, saturate."""
    x, zero = node.input(0), node.optional_input(2)
    dtype = UINT8 if zero is None else zero.dtype or node.output().dtype or node.dtype(2)
    divided = op.at(7).Div(_as(op, x, FLOAT), _fitted(op, node.input(1), x))
    return _saturated(op, divided, zero and _fitted(op, zero, x), dtype)


def _saturated(op: Emitter, divided: Value, zero: Value | None, dtype: int) -> Value:
    """Returns numbers rounded to an integer dtype of 8 bits, whose zero point is another one than 0."""
    rounded = op.at(11).Round(divided)
    if zero is not None and not _is_zero(zero):
        rounded = op.at(7).Add(rounded, _as(op, zero, FLOAT))
    low, high = lowest(dtype), largest(dtype)
    return op.Cast(op.at(11).Clip(rounded, op.const(low, FLOAT), op.const(high, FLOAT)), to=dtype)


@downgrade("DequantizeLinear", at=10)
def subtract_and_multiply(node: Node, op: Emitter) -> Value:
    """The formula of the specification; a difference of 8 bits is exact in float."""
    x, zero = node.input(0), node.optional_input(2)
    if zero is None or _is_zero(zero):
        difference = op.Cast(x, to=FLOAT)
    elif node.dtype(0) in QUANTIZED:
        difference = _shifted(op, x, _fitted(op, zero, x), FLOAT)
    else:
        difference = op.Cast(op.at(7).Sub(x, _fitted(op, zero, x)), to=FLOAT)
    return op.at(7).Mul(difference, _fitted(op, node.input(1), x))


@downgrade("DynamicQuantizeLinear", at=11)
def find_scale_and_zero_point(node: Node, op: Emitter) -> tuple[Value, ...]:
    """The range of the input with 0 in it becomes 0 to 255. If it is nothing but zeros, for which the text divides 0 by
    0, the scale is 1, as runtimes have it."""
    x, zero, top = node.input(0), op.const(0, FLOAT), op.const(255, FLOAT)
    least = op.Min(op.ReduceMin(x, keepdims=0), zero)
    width = op.Sub(op.Max(op.ReduceMax(x, keepdims=0), zero), least)
    nothing = op.Cast(op.Not(op.Cast(width, to=BOOL)), to=FLOAT)
    scale = op.Add(op.Div(width, top), nothing)
    start = op.at(11).Round(op.at(11).Clip(op.Sub(zero, op.Div(least, scale)), zero, top))
    point = op.Cast(start, to=UINT8)
    return op.QuantizeLinear(x, scale, point), scale, point


# ---- products of integers


@downgrade("MatMulInteger", at=10)
def multiply_in_float(node: Node, op: Emitter) -> Value:
    """The zero points are subtracted, and the product cast to int32."""
    zeros = _for_rows(node, op, 2) if node.optional_input(2) else None, node.optional_input(3)
    return op.Cast(_matmul(op, node.input(0), node.input(1), *zeros), to=INT32)


def _matmul(op: Emitter, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """Returns the exact product of two integer matrices, in a float dtype."""
    terms = [_terms(a.shape and a.shape[-1:]), _terms(b.shape and b.shape[-2:][:1])]
    dtype = FLOAT if any(0 < count <= _IN_FLOAT for count in terms) else DOUBLE
    return op.MatMul(_shifted(op, a, a_zero, dtype), _shifted(op, b, b_zero, dtype))


@downgrade("ConvInteger", at=10)
def convolve_in_float(node: Node, op: Emitter) -> Value:
    """The zero points are subtracted before the padding, which stands for them."""
    return _convolved(node, op, node.input(0), node.input(1), node.optional_input(2), node.optional_input(3))


def _convolved(node: Node, op: Emitter, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None) -> Value:
    """Returns the sums of a convolution, as int32."""
    terms = _terms(w.shape[1:] if w.shape else None)
    dtype = FLOAT if 0 < terms <= _IN_TWO_FLOATS else DOUBLE
    image = _shifted(op, x, x_zero, dtype)
    weights = _shifted(op, w, w_zero and _for_channels(op, w_zero, w, 0), dtype)
    attributes = {attribute.name: attribute for attribute in node.proto.attribute}
    if not _IN_FLOAT < terms <= _IN_TWO_FLOATS:
        return op.Cast(op.node("Conv", image, weights, **attributes)[0], to=INT32)
    high = op.at(6).Floor(op.at(7).Mul(weights, op.const(1 / _HIGH, FLOAT)))
    low = op.at(7).Sub(weights, op.at(7).Mul(high, op.const(_HIGH, FLOAT)))
    sums = [op.Cast(op.node("Conv", image, part, **attributes)[0], to=INT32) for part in (high, low)]
    return op.at(7).Add(op.at(7).Mul(sums[0], op.const(_HIGH, INT32)), sums[1])


def _terms(sizes: tuple[Dim, ...] | None) -> int:
    """Returns how many products are summed, 0 if it is not known."""
    known = fixed(sizes)
    return prod(known) if known else 0


@downgrade("QLinearMatMul", at=10)
def multiply_and_quantize(node: Node, op: Emitter) -> Value:
    """The exact product, scaled in float and quantized."""
    dtype = node.input(7).dtype or node.output().dtype or node.dtype(7)
    op.equivalent("how the product of the scales is rounded is not specified")
    sums = _matmul(op, node.input(0), node.input(3), _for_rows(node, op, 2), node.input(5))
    scale = op.at(7).Mul(_for_rows(node, op, 1), node.input(4))
    scale = op.at(7).Div(scale, _for_rows(node, op, 6))
    return _saturated(op, op.at(7).Mul(_as(op, sums, FLOAT), scale), _for_rows(node, op, 7), dtype)


@downgrade("QLinearConv", at=10)
def convolve_and_quantize(node: Node, op: Emitter) -> Value:
    """The exact sums with the bias, scaled in float and quantized."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (node.input(index) for index in range(8))
    bias, dtype = node.optional_input(8), y_zero.dtype or node.output().dtype or node.dtype(7)
    op.equivalent("how the product of the scales is rounded is not specified")
    sums = _convolved(node, op, x, w, x_zero, w_zero)
    if bias is not None:
        sums = op.at(7).Add(sums, _for_channels(op, bias, w, 1))
    scale = op.at(7).Div(op.at(7).Mul(x_scale, w_scale), y_scale)
    scaled = op.at(7).Mul(op.Cast(sums, to=FLOAT), _for_channels(op, scale, w, 1))
    return _saturated(op, scaled, y_zero, dtype)


# ---- scales and zero points


def _as(op: Emitter, value: Value, dtype: int) -> Value:
    """Returns a value in another dtype; a constant zero point, of few bytes, is written in it."""
    if value.dtype == dtype:
        return value
    known = value.constant if value.shape in ((), (1,)) else None
    return op.Cast(value, to=dtype) if known is None else op.const(known, dtype)


def _is_zero(point: Value) -> bool:
    known = point.constant
    return known is not None and not known.any()


def _shifted(op: Emitter, x: Value, zero: Value | None, dtype: int) -> Value:
    """Returns integers less their zero point, in a float dtype."""
    wide = op.Cast(x, to=dtype)
    return wide if zero is None or _is_zero(zero) else op.at(7).Sub(wide, _as(op, zero, dtype))


def _fitted(op: Emitter, one: Value, x: Value) -> Value:
    """Returns a scale or zero point that is one number, so that it leaves the rank of a value alone."""
    return one if one.rank == 0 or x.rank else op.at(5).Reshape(one, op.const([]))


def _for_rows(node: Node, op: Emitter, index: int) -> Value:
    """Returns a scale or zero point of each row of a matrix as a column; one for all, or one of higher rank, as it
    is."""
    value = node.input(index)
    if value.shape in ((), (1,)) or node.rank(index) != 1:
        return value
    return op.at(10).Unsqueeze(value, axes=[1])


def _for_channels(op: Emitter, value: Value, w: Value, axis: int) -> Value:
    """Returns a number for each channel (or for all of them), which are along an axis of a value of the rank of the
    weights."""
    if value.shape in ((), (1,)):
        return value
    if w.rank is not None:
        return op.at(5).Reshape(value, op.const([-1] + [1] * (w.rank - 1 - axis)))
    ones = ones_like(op, part(op, op.Shape(w), 1 + axis))
    return op.at(5).Reshape(value, op.at(4).Concat(op.const([-1]), ones, axis=0))
