# SPDX-License-Identifier: Apache-2.0
"""Clip.

6: `consumed_inputs`, a hint about memory, is gone; without `min` and `max` nothing was clipped; from 6 on the largest
finite floats are the default.
11: `min` and `max` are scalar inputs of the data's dtype, and an absent one is the limit of that dtype; below, they are
attributes, float32 whatever the data are, and an absent one is the limit of float32.
12: below, there are no integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import (
    FLOAT,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    as_float32,
    float32_of,
    is_integer,
    largest,
    lowest,
    number_like,
)

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_HINT: Final = ("consumed_inputs",)
_NARROW: Final = (INT8, UINT8, INT16, UINT16)  # many runtimes do not compare these


@upgrade("Clip", at=6)
def spell_out_no_bound(node: Node, op: Emitter) -> Value:
    """A bound that is absent is an infinity; without any, nothing is clipped."""
    if not node.has("min") and not node.has("max"):
        return op.Identity(node.input(0))
    absent: dict[str, Any] = {
        name: bound for name, bound in (("min", -math.inf), ("max", math.inf)) if not node.has(name)
    }
    return op.same(drop=_HINT, **absent)


@downgrade("Clip", at=6)
def spell_out_default_bounds(node: Node, op: Emitter) -> Value:
    """Writes what is absent as the default that it meant."""
    return op.same(**{name: node.attr(name) for name in ("min", "max") if not node.has(name)})


@upgrade("Clip", at=11)
def bounds_to_inputs(node: Node, op: Emitter) -> Value:
    """The attributes become constants of the data's dtype. An absent one stays so for float only, whose limit it is:
    a double may be beyond it, and so may the infinity of float16."""
    x, names = node.input(0), ("min", "max")
    spelled = [name for name in names if node.has(name) or x.dtype != FLOAT]
    bounds = [number_like(op, node.attr(name), x) if name in spelled else None for name in names]
    return op.same(x, *bounds, drop=names)


@downgrade("Clip", at=12)
def choose_integers(node: Node, op: Emitter) -> Value:
    """Integers are compared with each bound, the small ones as int32."""
    x, low, high = node.input(0), node.optional_input(1), node.optional_input(2)
    dtype = next((value.dtype for value in (x, low, high) if value is not None and value.dtype), None)
    if dtype is None or not is_integer(dtype):
        return op.same()
    narrow = dtype in _NARROW
    x = _as_int32(op, x) if narrow else x
    for operator, bound in ((op.at(12).Max, low), (op.at(12).Min, high)):
        if bound is not None:
            x = operator(x, _as_int32(op, bound) if narrow else bound)
    return op.Cast(x, to=dtype) if narrow else x


def _as_int32(op: Emitter, value: Value) -> Value:
    known = value.constant
    return op.Cast(value, to=INT32) if known is None else op.const(known, INT32)


@downgrade("Clip", at=11)
def bounds_to_attributes(node: Node, op: Emitter) -> Value:
    """Constant bounds that float32 holds become attributes; others are met by Max and Min."""
    x, inputs = node.input(0), (node.optional_input(1), node.optional_input(2))
    dtype = next((value.dtype for value in (x, *inputs) if value is not None and value.dtype), None) or node.dtype(0)
    pairs = list(zip(inputs, (lowest(dtype), largest(dtype)), strict=True))
    low, high = (as_float32(limit) if value is None else float32_of(value) for value, limit in pairs)
    if low is not None and high is not None:
        low = min(low, high)  # bounds the wrong way round give the upper one; runtimes refuse them as attributes
        return op.same(x, min=None if low == lowest(FLOAT) else low, max=None if high == largest(FLOAT) else high)
    bounds = [value or op.const(limit, dtype) for value, limit in pairs]
    return op.at(8).Min(op.at(8).Max(x, bounds[0]), bounds[1])
