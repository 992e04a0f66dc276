# SPDX-License-Identifier: Apache-2.0
"""Concat, Compress, Flatten, OneHot: operators along one axis.

4: Concat: `axis` is required; below, its default is 1.
11: `axis` may be negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.shapes import collapse, restore

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value


@upgrade("Concat", at=4)
def spell_out_axis(node: Node, op: Emitter) -> Value:
    """An absent axis is 1."""
    return op.same() if node.has("axis") else op.same(axis=1)


@downgrade("Concat", at=11)
def concat_at_positive_axis(node: Node, op: Emitter) -> Value:
    """A negative axis counts from the end of a known rank; of an unknown one, all before it becomes one dimension."""
    axis, inputs = node.attr("axis"), [value for value in node.inputs if value is not None]
    if axis >= 0:
        return op.same()
    rank = next((value.rank for value in (*inputs, node.output()) if value.rank is not None), None)
    if rank is not None:
        return op.same(axis=axis + rank)
    flat, before = zip(*(collapse(op, value, -axis) for value in inputs), strict=True)
    return restore(op, op.same(*flat, axis=1), before[0])


@downgrade("Compress", at=11)
def compress_at_positive_axis(node: Node, op: Emitter) -> Value:
    """A negative axis counts from the end of a known rank; of an unknown one, all before it becomes one dimension."""
    x, axis = node.input(0), node.attr("axis")
    if axis is None or axis >= 0 or x.rank is not None:
        return op.same() if axis is None else _same(node, op, axis)
    flat, before = collapse(op, x, -axis)
    taken = op.at(10).Squeeze(op.at(9).NonZero(node.input(1)), axes=[0])
    return restore(op, op.at(10).Gather(flat, taken, axis=1), before)  # inference does not know Compress-9


@downgrade("Flatten", at=11)
def flatten_at_positive_axis(node: Node, op: Emitter) -> Value:
    """A negative axis counts from the end of a known rank; of an unknown one, what is before it is made a row first."""
    x, axis = node.input(0), node.attr("axis")
    if axis >= 0 or x.rank is not None:
        return _same(node, op, axis)
    flat, _ = collapse(op, x, -axis)
    return op.same(flat, axis=1)


@downgrade("OneHot", at=11)
def one_hot_at_positive_axis(node: Node, op: Emitter) -> Outcome:
    """-1 always was the end; another negative axis counts from the end of the new rank."""
    axis, others = node.attr("axis"), node.inputs[1:]
    if axis >= -1:
        return op.same()
    return from_the_front(node, op, [axis], lambda x, axes: op.same(x, *others, axis=axes[0]), new=1)


def _same(node: Node, op: Emitter, axis: int) -> Value:
    """The node at an axis that is not negative, or counts from the end of a known rank."""
    return op.same() if axis >= 0 else op.same(axis=axis + node.rank(0))
