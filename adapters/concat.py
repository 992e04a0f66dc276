# SPDX-License-Identifier: Apache-2.0
"""Concat.

4: `axis` is required; below, its default is 1.
11: `axis` may be negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.shapes import collapse, restore

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


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
