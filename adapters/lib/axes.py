# SPDX-License-Identifier: Apache-2.0
"""Axes: counted from the front whatever the rank, and moved to where an operator works on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapters.lib.shapes import collapse, restore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx_convert.adapter import Emitter, Node, Outcome, Value


def from_the_front(
    node: Node, op: Emitter, axes: Sequence[int], write: Callable[[Value, list[int]], Outcome], new: int = 0
) -> Outcome:
    """Keeps a node that has no negative axes, and writes any other one by `write(x, axes)`.

    Negative axes count from the end of a known rank. Of an unknown rank, all axes before them become one, whose sizes
    are given back to what is written: axes -1 and -3 become 3 and 1 of four. The axes are those of the result, which
    has `new` more than the first input.
    """
    x = node.input(0)
    if min(axes, default=0) >= 0:
        return op.same()
    if x.rank is not None or max(axes) >= 0:
        rank = node.rank(0) + new
        return write(x, [node.axis(axis, rank) for axis in axes])
    tail = -min(axes)
    flat, before = collapse(op, x, tail - new)
    outcome = write(flat, [axis + tail + 1 for axis in axes])
    if isinstance(outcome, tuple):
        return tuple(restore(op, value, before) if value is not None else None for value in outcome)
    return restore(op, outcome, before)


# ---- permutations


def exchanged(one: int, other: int, rank: int) -> list[int]:
    """Returns the permutation in which two axes change places; it is its own inverse."""
    order = list(range(rank))
    order[one], order[other] = other, one
    return order


def moved(axis: int, to: int, rank: int) -> list[int]:
    """Returns the permutation that moves an axis, while the others stay in order: [1, 2, 0] for 0 to 2 of 3."""
    order = [other for other in range(rank) if other != axis]
    order.insert(to, axis)
    return order


def inverse(order: Sequence[int]) -> list[int]:
    """Returns the permutation that undoes one: [2, 0, 1] for [1, 2, 0]."""
    return [order.index(axis) for axis in range(len(order))]


def transpose(op: Emitter, x: Value, order: Sequence[int]) -> Value:
    """Writes a Transpose; returns the value itself if its axes stay where they are."""
    return x if list(order) == list(range(len(order))) else op.Transpose(x, perm=list(order))


def permuted(op: Emitter, x: Value, order: Sequence[int], write: Callable[[Value], Value]) -> Value:
    """Writes by `write(x)` what works on a value with its axes in another order, and puts them back."""
    return transpose(op, write(transpose(op, x, order)), inverse(order))
