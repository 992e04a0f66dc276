# SPDX-License-Identifier: Apache-2.0
"""Mod, BitShift, Range.

27: Range makes float16 and bfloat16, counting in the dtype that `stash_type` names.
28: Mod with fmod=0 takes floats, and its result has the sign of the divisor, zero included; BitShift shifts signed
integers, which keep their sign to the right, and says what becomes of counts that are negative or too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, dtype_name
from onnx_convert.adapters.lib.dtypes import (
    DOUBLE,
    FLOAT,
    HALVES,
    INT64,
    UINT32,
    UINT64,
    cast,
    is_integer,
    is_unsigned,
    width_of,
)

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


# ---- Mod


@downgrade("Mod", at=28)
def give_the_sign_of_the_divisor(node: Node, op: Emitter) -> Value:
    """The remainder of floats is that of C (fmod=1), plus the divisor where their signs differ; then it takes the
    divisor's sign, zero included. Integers need nothing."""
    if node.attr("fmod") or is_integer(node.dtype(0)):
        return op.same()
    a, b = node.input(0), node.input(1)
    remainder, sign = op.same(a, b, fmod=1), op.Sign(b)
    differs = op.Less(op.Mul(op.Sign(remainder), sign), op.const(0, node.dtype(0)))
    return op.Mul(op.Abs(op.Where(differs, op.Add(remainder, b), remainder)), sign)


# ---- BitShift


@downgrade("BitShift", at=28)
def shift_unsigned(node: Node, op: Emitter) -> Value:
    """Integers are shifted as unsigned ones, to the right with the bits of those below 0 inverted before and after; a
    count outside the width shifts everything out."""
    x, count, dtype = node.input(0), node.input(1), node.dtype(0)
    width, known = width_of(dtype), count.constant
    fits = known is not None and bool(((known >= 0) & (known < width)).all())
    if fits and is_unsigned(dtype):
        return op.same()
    carrier, full = (UINT64, 64) if width == 64 else (UINT32, 32)
    signed = not is_unsigned(dtype) and node.attr("direction") == "RIGHT"
    if signed:  # what is below 0 becomes -x - 1, in which all bits are inverted: nothing overflows on the way
        below = op.Cast(op.Less(x, op.const(0, dtype)), to=INT64)
        sign = op.Add(op.Mul(below, op.const(-2, INT64)), op.const(1, INT64))
        x = op.Mul(op.Add(cast(op, x, INT64), below), sign)
    bits, count = cast(op, x, carrier), cast(op, count, carrier)
    if fits:
        bits = op.same(bits, count)
    else:  # a negative count has become a very large one
        within = op.Cast(op.Less(count, op.const(full, carrier)), to=carrier)
        bits = op.Mul(op.same(bits, op.Mul(count, within)), within)
    if signed:
        bits = op.Sub(op.Mul(op.Cast(bits, to=INT64), sign), below)
    return cast(op, bits, dtype)


# ---- Range


@downgrade("Range", at=27)
def count_in_float(node: Node, op: Emitter) -> Value:
    """Casts what counts in float to it and back."""
    dtype, stash = node.input(0).dtype, node.attr("stash_type")
    if dtype not in HALVES:
        return op.same(drop=("stash_type",))
    if stash not in (FLOAT, DOUBLE):
        node.refuse(
            f"it counts in {dtype_name(stash)}, which Range takes from opset 27 on", "set stash_type to 1, float"
        )
    wide = [op.Cast(node.input(i), to=stash) for i in range(3)]
    return op.Cast(op.same(*wide, drop=("stash_type",)), to=dtype)
