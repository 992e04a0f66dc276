# SPDX-License-Identifier: Apache-2.0
"""Concat, Split, Compress, Flatten, Gather, OneHot: operators along one axis.

4: Concat: `axis` is required; below, its default is 1.
11: `axis` may be negative, and so may the indices of Gather.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import INT64
from onnx_convert.adapters.lib.indices import from_the_start, vector, wide
from onnx_convert.adapters.lib.shapes import END, collapse, known_size, non_negative, restore, size_at

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


@downgrade("Split", at=11)
def split_at_positive_axis(node: Node, op: Emitter) -> Outcome:
    """A negative axis counts from the end of a known rank; of an unknown one, all before it becomes one dimension."""
    return from_the_front(node, op, [node.attr("axis")], lambda x, axes: op.sames(x, axis=axes[0]))


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


@downgrade("Gather", at=11)
def gather_from_the_beginning(node: Node, op: Emitter) -> Outcome:
    """Axis and indices count from the beginning; indices that are computed are corrected when they are."""
    axis = node.attr("axis")
    indices = _non_negative_indices(node, op, axis)
    if axis >= 0:
        return op.same(node.input(0), indices)
    return from_the_front(node, op, [axis], lambda x, axes: op.same(x, indices, axis=axes[0]))


def _non_negative_indices(node: Node, op: Emitter, axis: int) -> Value:
    x, indices = node.input(0), node.input(1)
    known, length = indices.constant, known_size(x, axis)
    if known is not None and (known >= 0).all():
        return indices
    dtype = node.dtype(1)
    if length is None:
        size = op.at(10).Squeeze(size_at(op, op.Shape(x), axis), axes=[0])
        return non_negative(op, indices, size if dtype == INT64 else op.Cast(size, to=dtype))
    if known is not None:
        return op.const(known + length * (known < 0), dtype)
    return non_negative(op, indices, op.const(length, dtype))


@downgrade("OneHot", at=11)
def one_hot_at_positive_axis(node: Node, op: Emitter) -> Outcome:
    """-1 always was the end; another negative axis counts from the end of the new rank. Runtimes have always counted
    negative indices from the end, but onnx takes no constant ones."""
    axis, indices, others = node.attr("axis"), node.input(0), node.inputs[1:]
    if indices.constant is not None and (indices.constant < 0).any():
        # What lies before the first class, too, which is moved far behind the last.
        within = from_the_start(op, indices, vector(op, wide(op, node.input(1))))
        counted = from_the_start(op, within, op.const([END]))
        return op.same(counted, *others, axis=axis if axis >= -1 else node.axis(axis, node.rank(0) + 1))
    if axis >= -1:
        return op.same()
    return from_the_front(node, op, [axis], lambda x, axes: op.same(x, *others, axis=axes[0]), new=1)


def _same(node: Node, op: Emitter, axis: int) -> Value:
    """The node at an axis that is not negative, or counts from the end of a known rank."""
    return op.same() if axis >= 0 else op.same(axis=axis + node.rank(0))
