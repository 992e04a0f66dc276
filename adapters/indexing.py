# SPDX-License-Identifier: Apache-2.0
"""Compress, OneHot.

11: `axis` may be negative; below, -1 alone, in OneHot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import INT64, cast
from onnx_convert.adapters.lib.indices import from_the_start, vector
from onnx_convert.adapters.lib.shapes import END, collapse, restore

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value


@downgrade("Compress", at=11)
def compress_at_positive_axis(node: Node, op: Emitter) -> Value:
    """A negative axis counts from the end of a known rank; of an unknown one, all before it becomes one dimension."""
    x, axis = node.input(0), node.attr("axis")
    if axis is None or axis >= 0:
        return op.same()
    if x.rank is not None:
        return op.same(axis=axis + x.rank)
    flat, before = collapse(op, x, -axis)
    taken = op.at(10).Squeeze(op.at(9).NonZero(node.input(1)), axes=[0])
    return restore(op, op.at(10).Gather(flat, taken, axis=1), before)  # inference does not know Compress-9


@downgrade("OneHot", at=11)
def one_hot_at_positive_axis(node: Node, op: Emitter) -> Outcome:
    """-1 always was the end; another negative axis counts from the end of the new rank. Runtimes have always counted
    negative indices from the end, but onnx takes no constant ones."""
    axis, indices, others = node.attr("axis"), node.input(0), node.inputs[1:]
    if indices.constant is not None and (indices.constant < 0).any():
        # What lies before the first class, too, which is moved far behind the last.
        within = from_the_start(op, indices, vector(op, cast(op, node.input(1), INT64)))
        counted = from_the_start(op, within, op.const([END]))
        return op.same(counted, *others, axis=axis if axis >= -1 else node.axis(axis, node.rank(0) + 1))
    if axis >= -1:
        return op.same()
    return from_the_front(node, op, [axis], lambda x, axes: op.same(x, *others, axis=axes[0]), new=1)
