# SPDX-License-Identifier: Apache-2.0
"""Attention.

24: `nonpad_kv_seqlen` tells how many keys of each member of the batch are there, and what is causal counts from their
end; a mask may be shorter than the keys, which then are masked.
25: windows limit how far a query looks to the left and to the right of its own position.

All of this only masks keys, so it can be said by `attn_mask`. In every version the text has come to say that a query
without any key gives zeros.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, is_integer

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value

QUERY, KEY, _, MASK, PAST, _, LENGTHS = range(7)


@downgrade("Attention", at=25)
def mask_outside_the_windows(node: Node, op: Emitter) -> Outcome:
    """The keys outside the windows are masked."""
    left, right = node.attr("left_window_size"), node.attr("right_window_size")
    gone = ("left_window_size", "right_window_size")
    if left < 0 and right < 0:
        return op.same(drop=gone)
    mask = node.optional_input(MASK)
    keys = _indices(op, _size(op, mask, -1) if mask is not None else _total(node, op))
    own = _positions(node, op)
    windows = []
    if left >= 0:
        windows.append(op.GreaterOrEqual(op.Add(keys, op.const(left)), own))
    if right >= 0:
        windows.append(op.LessOrEqual(keys, op.Add(own, op.const(right))))
    allowed = windows[0] if len(windows) == 1 else op.And(*windows)
    inputs = _inputs(node)
    inputs[MASK] = _both(node, op, mask, allowed)
    return op.same(*inputs, drop=gone)


@downgrade("Attention", at=24)
def mask_what_is_padding(node: Node, op: Emitter) -> Outcome:
    """The keys beyond the length of a member are masked, and those that are not causal; a short mask is filled up."""
    inputs = _inputs(node)
    lengths, causal = inputs.pop(), node.attr("is_causal")
    inputs[MASK] = mask = _filled_up(node, op)
    if lengths is None:
        return op.same(*inputs)
    keys = _indices(op, _total(node, op))
    allowed = op.Less(keys, _by_member(op, lengths))
    if causal:
        allowed = op.And(allowed, op.LessOrEqual(keys, _positions(node, op)))
    elif mask is None:  # runtimes want a row for each query
        allowed = op.Expand(allowed, _row_for_each_query(node, op))
    inputs[MASK] = _both(node, op, mask, allowed)
    return op.same(*inputs, is_causal=None)


def _row_for_each_query(node: Node, op: Emitter) -> Value:
    """The shape to which a mask of one row expands."""
    query = node.input(QUERY)
    known = _known(query, -2)
    if isinstance(known, int):
        return op.const([1, 1, known, 1])
    rows = op.Unsqueeze(_size(op, query, -2), op.const([0]))
    return op.Concat(op.const([1, 1]), rows, op.const([1]), axis=0)


def _inputs(node: Node) -> list[Value | None]:
    """All seven inputs, None for each that is left out."""
    return [*node.inputs, *[None] * 7][:7]


def _known(value: Value, axis: int) -> int | str | None:
    return value.shape[axis] if value.shape else None


def _size(op: Emitter, value: Value, axis: int) -> Value:
    """The size at an axis that counts from the end, a scalar."""
    known = _known(value, axis)
    return op.const(known) if isinstance(known, int) else op.Gather(op.Shape(value), op.const(axis))


def _known_total(node: Node) -> int | str | None:
    """The number of keys, or the symbol for it, those of the past included."""
    past, size = node.optional_input(PAST), _known(node.input(KEY), -2)
    if past is None:
        return size
    before = _known(past, -2)
    return before + size if isinstance(before, int) and isinstance(size, int) else None


def _total(node: Node, op: Emitter) -> Value:
    """The number of keys, those of the past included, a scalar."""
    past, known = node.optional_input(PAST), _known_total(node)
    if isinstance(known, int):
        return op.const(known)
    size = _size(op, node.input(KEY), -2)
    return size if past is None else op.Add(_size(op, past, -2), size)


def _indices(op: Emitter, size: Value) -> Value:
    return op.Range(op.const(0), size, op.const(1))


def _positions(node: Node, op: Emitter) -> Value:
    """The position of each query among the keys, as a column; for each member of the batch if their lengths differ."""
    count = _size(op, node.input(QUERY), -2)
    own = op.Unsqueeze(_indices(op, count), op.const([1]))
    past, lengths = node.optional_input(PAST), node.optional_input(LENGTHS)
    if past is not None:
        return op.Add(own, _size(op, past, -2))
    if lengths is not None:
        return op.Add(own, _by_member(op, op.Sub(lengths, count)))
    return own


def _by_member(op: Emitter, numbers: Value) -> Value:
    """One number for each member of the batch. Not by Unsqueeze: inference takes what it makes for a shape."""
    return op.Reshape(numbers, op.const([-1, 1, 1, 1]))


def _both(node: Node, op: Emitter, mask: Value | None, allowed: Value) -> Value:
    """A mask under which a key is seen if the mask lets it and it is allowed."""
    if mask is None:
        return allowed
    dtype = node.dtype(MASK)
    if dtype == BOOL:
        return op.And(mask, allowed)
    return op.Where(allowed, mask, op.const(_nothing(node), dtype))


def _nothing(node: Node) -> float | bool:
    """What a mask holds for a key that is not to be seen."""
    dtype = node.dtype(MASK)
    if is_integer(dtype):
        node.refuse("the mask is of integers, which have no value for a key that is masked", "cast it to float or bool")
    return False if dtype == BOOL else -inf


def _filled_up(node: Node, op: Emitter) -> Value | None:
    """The mask, with as many columns as there are keys."""
    mask = node.optional_input(MASK)
    if mask is None or _known(mask, -1) is not None and _known(mask, -1) == _known_total(node):
        return mask
    missing = op.Sub(_total(node, op), _size(op, mask, -1))
    pads = op.Concat(op.const([0]), op.Unsqueeze(missing, op.const([0])), axis=0)
    return op.Pad(mask, pads, op.const(_nothing(node), node.dtype(MASK)), op.const([-1]))
