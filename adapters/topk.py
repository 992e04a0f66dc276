# SPDX-License-Identifier: Apache-2.0
"""TopK.

10: `K` is an input; below, `k` is an attribute.
11: `largest` and `sorted` are attributes; below, the largest elements come in order. An axis other than -1 may be
negative, and there are integers.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.bodies import tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, INT64, UINT64, cast, is_integer, is_unsigned, largest, lowest
from onnx_convert.adapters.lib.shapes import count_up, known_size, part, product, ranked, reshape, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value


@upgrade("TopK", at=10)
def number_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant of one element."""
    return op.same(node.input(0), op.const([node.attr("k")]), drop=("k",))


@downgrade("TopK", at=10)
def number_to_attribute(node: Node, op: Emitter) -> Value | tuple[Value, ...]:
    """A constant number becomes the attribute. With another one all are put in order, and the first of them taken, or a
    Loop takes one by one where nobody knows how many there are. None at all, which the attribute must not be, is an
    empty slice."""
    x, number, axis = node.input(0), node.input(1), node.attr("axis")
    known, length = number.constant, known_size(x, axis)
    if length == 0 or (known is not None and known.item() == 0):
        nothing = op.at(11).Slice(x, op.const([0]), op.const([0]), op.const([axis]))
        return nothing, op.Cast(nothing, to=INT64)
    if known is not None:
        return op.same(x, k=int(known.item()))
    if length is None:
        return _one_by_one(node, op)
    everything = op.sames(x, k=length)
    start, along = op.const([0]), op.const([axis])
    return tuple(op.at(11).Slice(value, start, number, along) for value in everything)


def _one_by_one(node: Node, op: Emitter) -> tuple[Value, Value]:
    """Returns a Loop that finds the largest element that is left, the first of equal ones, so often as is asked for."""
    x, axis, dtype = node.input(0), node.attr("axis"), node.dtype(0)
    shape = op.Shape(x)
    axis = axis if x.rank is None else axis % x.rank
    before = part(op, shape, 0, axis) if axis else op.const([], INT64)
    after = part(op, shape, axis + 1) if axis != -1 else op.const([], INT64)
    number, length = op.at(5).Reshape(node.input(1), op.const([1])), size_at(op, shape, axis)
    outer, inner = (product(op, sizes) for sizes in (before, after))
    flat = ranked(op, reshape(op, x, op.at(4).Concat(outer, length, inner, axis=0)), 3)
    row = op.at(10).Unsqueeze(count_up(op, length), axes=[0, 2])
    nothing = op.at(7).Less(flat, flat)

    def step(within: Emitter, _: Value, going: Value, taken: Value) -> tuple[Value, ...]:
        left = within.Where(taken, within.const(lowest(dtype) if is_integer(dtype) else -inf, dtype), flat)
        smaller = within.Less(left, within.ReduceMax(left, axes=[1], keepdims=1))
        place = within.ArgMax(within.Cast(within.Not(within.Or(smaller, taken)), to=FLOAT), axis=1, keepdims=1)
        return going, within.Or(taken, within.Equal(row, place)), place

    body = op.graph("largest", [INT64, BOOL, tensor_type(BOOL, None, None, None)], step)
    count = op.at(10).Squeeze(number, axes=[0])
    _, places = op.node("Loop", count, op.const(True, BOOL), nothing, body=body, outputs=2)
    indices = op.Transpose(op.at(10).Squeeze(places, axes=[2]), perm=[1, 0, 2])
    sizes = op.at(4).Concat(before, number, after, axis=0)
    values = op.at(11).GatherElements(flat, indices, axis=1)
    return reshape(op, values, sizes), reshape(op, indices, sizes)


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
