# SPDX-License-Identifier: Apache-2.0
"""Softmax, LogSoftmax, Hardmax.

11: `axis` may be negative.
13: below, the input is flattened to 2-D at `axis` (default 1) and normalised over all that follows; from 13 on `axis`
(default -1) alone is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import exchanged, permuted
from onnx_convert.adapters.lib.shapes import collapse, reshape, restore, shape_of, three_dimensions

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

FAMILY = ("Softmax", "LogSoftmax", "Hardmax")


@upgrade(*FAMILY, at=13)
def normalise_one_axis(node: Node, op: Emitter) -> Value:
    """One axis is what was flattened if it is the last; otherwise flatten, normalise, and restore the shape."""
    x, axis = node.input(0), node.attr("axis")
    rank = x.rank
    if axis == -1 or (rank is not None and node.axis(axis, rank) >= rank - 1):
        return op.same(axis=-1)
    shape = shape_of(op, x)
    flat = op.Flatten(x, axis=axis)
    return reshape(op, op.same(flat, axis=-1), shape)


@downgrade(*FAMILY, at=13)
def normalise_trailing_axes(node: Node, op: Emitter) -> Value:
    """The last axis needs nothing; another one is moved there by a Transpose, and back."""
    x, axis = node.input(0), node.attr("axis")
    rank = x.rank
    if axis == -1:
        return op.same(axis=-1 if rank is None else rank - 1)
    if rank is None:
        return _normalise_in_three_dimensions(node, op, axis)
    axis = node.axis(axis, rank)
    if axis >= rank - 1:
        return op.same(axis=axis)
    return permuted(op, x, exchanged(axis, rank - 1, rank), lambda moved: op.same(moved, axis=rank - 1))


def _normalise_in_three_dimensions(node: Node, op: Emitter, axis: int) -> Value:
    """Reshapes to [before, axis, after], whatever the rank, puts the axis last, normalises rows, undoes it."""
    x = node.input(0)
    shape = op.Shape(x)
    blocks = reshape(op, x, three_dimensions(op, shape, axis))
    return reshape(op, permuted(op, blocks, [0, 2, 1], lambda turned: op.same(turned, axis=2)), shape)


def _normalise_rows(x: Value, op: Emitter, tail: int) -> Value:
    """Makes rows of the last axes, whatever the rank."""
    flat, before = collapse(op, x, tail)
    return restore(op, op.same(flat, axis=1), before)


@downgrade(*FAMILY, at=11)
def flatten_at_positive_axis(node: Node, op: Emitter) -> Value:
    """A negative axis counts from the end of a known rank; of an unknown one, all before it becomes one axis."""
    x, axis = node.input(0), node.attr("axis")
    if x.rank is None:
        return op.same() if axis >= 0 else _normalise_rows(x, op, -axis)
    front = node.axis(axis, node.rank(0))
    return op.same() if front == axis else op.same(axis=front)
