# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear, DequantizeLinear, QLinearMatMul.

13: a scale may be given for each index of an axis; below, there is one for all.
19: float8; scales of float16 and bfloat16; what is quantized and the scale have one dtype, which lets int32 go with a
float scale no longer (from 23 on it may again).
21: int16 and four bits; blocks along an axis share a scale; QuantizeLinear may state its dtype without a zero point.
23: the dtypes are independent again; the division has the precision of the scale, or one of its own, and
DequantizeLinear may state its dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, dtype_name, upgrade
from onnx_convert.adapters.lib.dtypes import (
    FLOAT,
    HALVES,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    cast,
    is_integer,
    largest,
    lowest,
)
from onnx_convert.adapters.lib.shapes import count_up, known_size, ones_like, part, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

WIDE_INTEGERS: Final = (INT16, UINT16)
QUANTIZED: Final = (INT8, UINT8, *WIDE_INTEGERS)  # into which Clip and Cast quantize

# ---- QuantizeLinear


@downgrade("QuantizeLinear", at=23)
def divide_in_one_dtype(node: Node, op: Emitter) -> Value:
    """Casts what is divided to the precision of the division before."""
    x, scale = node.input(0), node.input(1)
    precision = node.attr("precision") or (x if scale.dtype == INT32 else scale).dtype
    if precision is None or x.dtype == scale.dtype == precision:
        return op.same(drop=("precision",))
    return op.same(cast(op, x, precision), cast(op, scale, precision), node.optional_input(2), drop=("precision",))


@downgrade("QuantizeLinear", at=21)
def quantize_by_arithmetic(node: Node, op: Emitter) -> Value:
    """Blocks, and what gets 16 bits, are quantized by arithmetic; a dtype that is only stated becomes that of a zero
    point."""
    scale, zero = node.input(1), node.optional_input(2)
    dtype, block = _quantized_dtype(node), node.attr("block_size")
    if block or dtype in WIDE_INTEGERS:
        return _quantized(node, op, dtype or node.dtype(2), block)
    if zero is None and dtype is not None and dtype != UINT8:
        if dtype not in QUANTIZED and not dtype_name(dtype).startswith("float8e"):
            node.refuse(f"it makes {dtype_name(dtype)}, which opset 20 does not know", "go no lower than opset 21")
        zero = _zero_like(op, scale, dtype)
    return op.same(node.input(0), scale, zero, drop=("block_size", "output_dtype"))


@upgrade("QuantizeLinear", at=19)
def cast_integers_to_the_scale(node: Node, op: Emitter) -> Value:
    """An int32 is cast to the dtype of the scale, float."""
    x, scale, zero = node.input(0), node.input(1), node.optional_input(2)
    if x.dtype != INT32:
        return op.same()
    op.equivalent("how precise the division of integers was is not specified")
    return op.same(op.Cast(x, to=FLOAT), scale, zero)


@downgrade("QuantizeLinear", at=19)
def divide_in_float(node: Node, op: Emitter) -> Value:
    """Casts what is divided to float before. `saturate` concerns float8 only."""
    x, scale, zero = node.input(0), node.input(1), node.optional_input(2)
    if x.dtype in HALVES or scale.dtype in (*HALVES, INT32):
        op.equivalent("the division has the precision of float, hence may fall to the other side of a half")
        return op.same(
            x if x.dtype == INT32 else op.Cast(x, to=FLOAT), op.Cast(scale, to=FLOAT), zero, drop=("saturate",)
        )
    return op.same(drop=("saturate",))


@downgrade("QuantizeLinear", at=13)
def divide_before(node: Node, op: Emitter) -> Value:
    """Scales of an axis divide first and the scale is 1 then; if the zero points differ, too, all is arithmetic."""
    x, scale, zero = node.input(0), node.input(1), node.optional_input(2)
    if _is_one(scale):
        return op.same(x, _scalar(op, scale), zero and _scalar(op, zero), drop=("axis",))
    common = _common(op, zero)
    if zero is not None and common is None:
        return _quantized(node, op, _quantized_dtype(node) or node.dtype(2), 0)
    return op.same(_divided(node, op, 0), op.const(1, FLOAT), common, drop=("axis",))


def _quantized_dtype(node: Node) -> int | None:
    """Returns the dtype that QuantizeLinear makes, None if it is that of a zero point of which nothing is known."""
    zero = node.optional_input(2)
    if zero is not None:
        return zero.dtype or node.output().dtype
    return node.attr("output_dtype") or UINT8  # stated from 21 on


def _divided(node: Node, op: Emitter, block: int) -> Value:
    """Returns what QuantizeLinear divides, divided by the scales that belong to it."""
    x, axis = node.input(0), node.attr("axis")
    if x.dtype == INT32:
        return op.Div(op.Cast(x, to=FLOAT), cast(op, _stretched(op, node.input(1), x, axis, block), FLOAT))
    return op.Div(x, _stretched(op, node.input(1), x, axis, block))


def _quantized(node: Node, op: Emitter, dtype: int, block: int) -> Value:
    """Writes the formula of QuantizeLinear, element by element. Sums are exact in float: what is beyond 2**24
    saturates."""
    x, zero = node.input(0), node.optional_input(2)
    divided = _divided(node, op, block)
    if dtype not in QUANTIZED:  # float8, which has no zero point; others are not legal
        return op.Cast(divided, to=dtype, saturate=node.attr("saturate"))
    result = op.at(11).Round(divided if x.dtype in (FLOAT, INT32) else op.Cast(divided, to=FLOAT))
    if zero is not None:
        stretched = _stretched(op, zero, x, node.attr("axis"), block)
        result = op.Add(result, op.Cast(stretched, to=FLOAT))
    low, high = lowest(dtype), largest(dtype)
    return op.Cast(op.at(11).Clip(result, op.const(low, FLOAT), op.const(high, FLOAT)), to=dtype)


def _zero_like(op: Emitter, scale: Value, dtype: int) -> Value:
    """Returns zeros of a dtype in the shape of a scale."""
    if scale.rank == 0:
        return op.const(0, dtype)
    size = scale.shape[0] if scale.shape else None
    if isinstance(size, int):
        return op.const([0] * size, dtype)
    return op.Cast(op.at(8).Expand(op.const(0, FLOAT), op.Shape(scale)), to=dtype)


# ---- DequantizeLinear


@downgrade("DequantizeLinear", at=23)
def cast_what_comes_out(node: Node, op: Emitter) -> Value:
    """The dtype is that of the scale: a wider scale gives a wider result, and any result can be cast."""
    dtype, scale = node.attr("output_dtype"), node.input(1)
    if dtype in (0, scale.dtype):
        return op.same(drop=("output_dtype",))
    x, zero = node.input(0), node.optional_input(2)
    wide = cast(op, scale, FLOAT)
    if dtype == FLOAT:
        return op.same(x, wide, zero, drop=("output_dtype",))
    op.equivalent("the multiplication has the precision of float")
    return op.Cast(op.same(x, wide, zero, drop=("output_dtype",)), to=dtype)


@downgrade("DequantizeLinear", at=21)
def dequantize_by_arithmetic(node: Node, op: Emitter) -> Value:
    """Blocks, and what has 16 bits, are dequantized by arithmetic."""
    block = node.attr("block_size")
    if block or node.input(0).dtype in WIDE_INTEGERS:
        return _dequantized(node, op, block)
    return op.same(drop=("block_size",))


@downgrade("DequantizeLinear", at=19)
def multiply_in_float(node: Node, op: Emitter) -> Value:
    """A scale of float16 or bfloat16 is cast to float, and the result back: exact for integers of 8 bits."""
    x, scale, zero = node.input(0), node.input(1), node.optional_input(2)
    if scale.dtype not in HALVES:
        return op.same()
    if x.dtype == INT32:
        op.equivalent("the multiplication has the precision of float")
    return op.Cast(op.same(x, op.Cast(scale, to=FLOAT), zero), to=scale.dtype)


@downgrade("DequantizeLinear", at=13)
def multiply_after(node: Node, op: Emitter) -> Value:
    """Scales of an axis multiply afterwards, and the scale is 1; if the zero points differ, too, all is arithmetic."""
    x, scale, zero = node.input(0), node.input(1), node.optional_input(2)
    if _is_one(scale):
        return op.same(x, _scalar(op, scale), zero and _scalar(op, zero), drop=("axis",))
    common = _common(op, zero)
    if zero is not None and common is None:
        return _dequantized(node, op, 0)
    stretched = _stretched(op, scale, x, node.attr("axis"), 0)
    return op.Mul(op.same(x, op.const(1, FLOAT), common, drop=("axis",)), stretched)


def _dequantized(node: Node, op: Emitter, block: int) -> Value:
    """Writes the formula of DequantizeLinear, element by element, in float; its result has the dtype of the scale."""
    x, scale, zero, axis = node.input(0), node.input(1), node.optional_input(2), node.attr("axis")
    whole = is_integer(node.dtype(0))
    dtype = scale.dtype or node.output().dtype or node.dtype(1)
    if zero is not None and whole:
        x = op.Sub(op.Cast(x, to=INT32), op.Cast(_stretched(op, zero, x, axis, block), to=INT32))
    factor = _stretched(op, scale, node.input(0), axis, block)
    return cast(op, op.Mul(op.Cast(x, to=FLOAT), factor if dtype == FLOAT else op.Cast(factor, to=FLOAT)), dtype)


# ---- QLinearMatMul


@downgrade("QLinearMatMul", at=21)
def scales_of_float(node: Node, op: Emitter) -> Value:
    """Scales of float16 and bfloat16 are cast to float."""
    inputs = node.inputs
    if not any(value is not None and value.dtype in HALVES for value in inputs):
        return op.same()
    op.equivalent("the scales are multiplied in float")
    return op.same(*(op.Cast(v, to=FLOAT) if v is not None and v.dtype in HALVES else v for v in inputs))


# ---- scales and zero points


def _is_one(scale: Value) -> bool:
    """Returns whether a scale is known to be a single one."""
    return scale.shape in ((), (1,))


def _scalar(op: Emitter, value: Value) -> Value:
    return value if value.rank == 0 else op.at(5).Reshape(value, op.const([]))


def _common(op: Emitter, zero: Value | None) -> Value | None:
    """Returns the zero point that all indices of an axis share, None if it is not known that they do."""
    known = zero.constant if zero is not None else None
    if zero is None or zero.dtype is None or known is None or known.size == 0 or (known != known.flat[0]).any():
        return None
    return zero if zero.rank == 0 else op.const(known.flat[0], zero.dtype)


def _stretched(op: Emitter, value: Value, x: Value, axis: int, block: int) -> Value:
    """Returns a scale or zero point in a shape that broadcasts to that of x, whose rank may be unknown."""
    if block:
        return _repeated(op, value, x, axis, block)
    if value.rank == 0 or x.rank in (0, 1) or axis == -1:
        return value
    if axis < 0 or x.rank is not None:
        count = -axis - 1 if axis < 0 or x.rank is None else x.rank - axis - 1
        return op.at(5).Reshape(value, op.const([-1] + [1] * count)) if count else value
    after = ones_like(op, part(op, op.Shape(x), axis + 1))
    own = op.const([-1]) if value.rank else op.Shape(value)  # that of a single scale is empty
    return op.at(5).Reshape(value, op.at(4).Concat(own, after, axis=0))


def _repeated(op: Emitter, value: Value, x: Value, axis: int, block: int) -> Value:
    """Returns a scale or zero point of blocks, once for each element of an axis."""
    size = known_size(x, axis)
    if size is not None:
        return op.Gather(value, op.const([index // block for index in range(size)]), axis=axis)
    indices = op.at(7).Div(count_up(op, size_at(op, op.Shape(x), axis)), op.const([block]))
    return op.Gather(value, indices, axis=axis)
