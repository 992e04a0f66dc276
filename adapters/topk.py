# SPDX-License-Identifier: Apache-2.0
"""TopK.

10: `K` is an input; below, `k` is an attribute.
11: `largest` and `sorted` are attributes; below, the largest elements come in order. An axis other than -1 may be
negative, and there are integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import INT64, UINT64, cast, is_integer, is_unsigned, largest
from onnx_convert.adapters.lib.shapes import known_size

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value


@upgrade("TopK", at=10)
def number_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant of one element."""
    return op.same(node.input(0), op.const([node.attr("k")]), drop=("k",))


@downgrade("TopK", at=10)
def number_to_attribute(node: Node, op: Emitter) -> Value | tuple[Value, ...]:
    """A constant number becomes the attribute; with another one all are put in order, and the first of them taken.
    None at all, which the attribute must not be, is an empty slice."""
    x, number, axis = node.input(0), node.input(1), node.attr("axis")
    known, length = number.constant, known_size(x, axis)
    if length == 0 or (known is not None and known.item() == 0):
        nothing = op.at(11).Slice(x, op.const([0]), op.const([0]), op.const([axis]))
        return nothing, op.Cast(nothing, to=INT64)
    if known is not None:
        return op.same(x, k=int(known.item()))
    if not isinstance(length, int):
        node.refuse(
            "input K is computed at run time, and the length of the axis is not known",
            "make K a constant, or give the axis a size",
            unknown=True,
        )
    everything = op.sames(x, k=length)
    start, along = op.const([0]), op.const([axis])
    return tuple(op.at(11).Slice(value, start, number, along) for value in everything)


@downgrade("TopK", at=11)
def smallest_as_largest(node: Node, op: Emitter) -> Outcome:
    """The smallest elements are the largest of the negated ones. Where no order is asked for, they are in order too."""
    axis = node.attr("axis")
    if axis >= -1:  # -1 is the default, and needs no rank
        return _largest(node, op, node.input(0), None if axis == -1 else axis)
    return from_the_front(node, op, [axis], lambda x, axes: _largest(node, op, x, axes[0]))


def _largest(node: Node, op: Emitter, x: Value, axis: int | None) -> tuple[Value, ...]:
    number, gone = node.input(1), ("largest", "sorted")
    if node.attr("largest"):
        return op.sames(x, number, drop=gone, axis=axis)
    dtype = node.dtype(0)
    signed = INT64 if dtype == UINT64 else dtype
    values, indices = op.sames(_negated(op, cast(op, x, signed), signed), number, drop=gone, axis=axis)
    return cast(op, _negated(op, values, signed), dtype) if node.uses_output(0) else values, indices


def _negated(op: Emitter, x: Value, dtype: int) -> Value:
    """Writes -x; of narrow integers, whose lowest has no opposite, -1-x, or max-x if they have no sign. Integers of 64
    bits go through double, which holds no more numbers below 0 than above."""
    if dtype == INT64 or not is_integer(dtype):
        return op.at(6).Neg(x)
    return op.at(7).Sub(op.const(largest(dtype) if is_unsigned(dtype) else -1, dtype), x)
