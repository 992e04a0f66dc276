# SPDX-License-Identifier: Apache-2.0
"""BitCast.

26: it is there. Below, the bits of a float are put together from sign, exponent and fraction, or taken apart into them;
the payload of a NaN gets lost on the way.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy

from onnx_convert.adapter import downgrade, dtype_name
from onnx_convert.adapters.decompose.bits import in_dtype
from onnx_convert.adapters.lib.dtypes import (
    BFLOAT16,
    BOOL,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT64,
    is_integer,
    is_unsigned,
    width_of,
)

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


class Layout(NamedTuple):
    """The number of bits of a float that are its fraction, and of those that are its exponent; the rest is its sign."""

    fraction: int
    exponent: int

    @property
    def bias(self) -> int:
        """The number by which the exponent's bits exceed the exponent."""
        return int((1 << (self.exponent - 1)) - 1)

    @property
    def one(self) -> int:
        """The leading bit of a number, counted in units of the last one of its fraction."""
        return 1 << self.fraction


FLOATS: Final = {
    FLOAT16: Layout(10, 5),
    BFLOAT16: Layout(7, 8),
    FLOAT: Layout(23, 8),
    DOUBLE: Layout(52, 11),
}


@downgrade("BitCast", at=26)
def read_bits_by_arithmetic(node: Node, op: Emitter) -> Value:
    """Cast makes an integer of another of the same width; between integers and floats there is arithmetic."""
    x, start, stop = node.input(0), node.dtype(0), node.attr("to")
    if start == stop:
        return op.Identity(x)
    into_integer, from_integer = is_integer(stop), is_integer(start)
    if into_integer and (from_integer or start == BOOL):
        return op.same(operator="Cast")
    if into_integer and start in FLOATS and start != DOUBLE:
        return _take_apart(op, x, FLOATS[start], stop)
    if not from_integer or stop not in FLOATS:
        pair = f"{dtype_name(start)} as {dtype_name(stop)}"
        node.refuse(f"nothing below opset 26 tells the bits of {pair}", "go no lower than opset 26")
    return _put_together(op, in_dtype(op, x, start, INT64), FLOATS[stop], stop)


def _put_together(op: Emitter, bits: Value, layout: Layout, dtype: int) -> Value:
    """Returns the fraction, with its leading bit unless the exponent's bits are 0, times a power of two that has the
    sign."""
    one, wide = op.const(layout.one), DOUBLE if dtype == DOUBLE else FLOAT
    fraction = op.Mod(bits, one)
    head = op.Mod(op.Div(op.Sub(bits, fraction), one), op.const(2 << layout.exponent))
    exponents = numpy.arange(1 << layout.exponent)
    last = exponents == exponents[-1]
    powers = numpy.ldexp(1.0, numpy.maximum(exponents, 1) - layout.bias - layout.fraction)
    powers[last] = numpy.inf
    leads = numpy.where(exponents > 0, layout.one, 0)
    whole = op.Add(fraction, op.Gather(op.const(numpy.tile(leads, 2)), head))
    power = op.Gather(op.const(numpy.concatenate([powers, -powers]), wide), head)
    value = op.Mul(op.Cast(whole, to=wide), power)
    is_nan = op.Greater(op.Mul(fraction, op.Gather(op.const(numpy.tile(last, 2)), head)), op.const(0))
    return in_dtype(op, op.Where(is_nan, op.const(numpy.nan, wide), value), wide, dtype)


def _take_apart(op: Emitter, x: Value, layout: Layout, dtype: int) -> Value:
    """Works in double, whose logarithm tells the exponent of every narrower float: the next one below a power of two is
    farther from it than what is added here."""
    lowest, beyond = 1 - layout.bias, layout.bias + 1
    wide = op.Cast(x, to=DOUBLE)
    finite = op.Min(op.Abs(wide), op.const(2.0**beyond, DOUBLE))
    size = op.Where(op.IsNaN(wide), op.const(1.5 * 2.0**beyond, DOUBLE), finite)
    near = op.Add(op.Mul(op.Log(size), op.const(1 / log(2), DOUBLE)), op.const(2.0**-25, DOUBLE))
    exponent = op.Max(op.Floor(near), op.const(lowest, DOUBLE))
    steps = op.Cast(op.Sub(exponent, op.const(lowest, DOUBLE)), to=INT64)
    powers = [2.0 ** (layout.fraction - power) for power in range(lowest, beyond + 1)]
    whole = op.Cast(op.Mul(size, op.Gather(op.const(powers, DOUBLE), steps)), to=INT64)
    zero = op.const(0, DOUBLE)
    negative = op.Or(op.Less(wide, zero), op.Less(op.Reciprocal(wide), zero))  # -0 too
    weight = 1 << (width_of(dtype) - 1)
    sign = op.Mul(op.Cast(negative, to=INT64), op.const(weight if is_unsigned(dtype) else -weight))
    return in_dtype(op, op.Add(op.Add(op.Mul(steps, op.const(layout.one)), whole), sign), INT64, dtype)
