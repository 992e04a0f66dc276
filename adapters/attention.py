# SPDX-License-Identifier: Apache-2.0
"""Attention.

24: `nonpad_kv_seqlen` tells how many keys of each member of the batch are there, and what is causal counts from their
end; a mask may be shorter than the keys, which then are masked.
25: windows limit how far a query looks to the left and to the right of its own position.

All of this only masks keys, so it can be said by `attn_mask`. In every version the text has come to say that a query
without any key gives zeros, and that logits are capped by a product with tanh, whose sign is that of the cap: a cap
below 0 is its opposite, which runtimes know of some versions only.
"""

from __future__ import annotations

from functools import reduce
from math import inf
from typing import TYPE_CHECKING, Any

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, is_integer
from onnx_convert.adapters.lib.indices import WRITTEN
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import END, known_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Emitter, Node, Outcome, Value

QUERY, KEY, _, MASK, PAST, _, LENGTHS = range(7)


@downgrade("Attention", at=25)
def mask_outside_the_windows(node: Node, op: Emitter) -> Outcome:
    """The keys outside the windows are masked."""
    left, right = node.attr("left_window_size"), node.attr("right_window_size")
    gone = {"left_window_size": None, "right_window_size": None, **_cap(node)}
    mask, numbers = node.optional_input(MASK), Numbers(op)
    windows: list[Value] = []
    if left >= 0 or right >= 0:
        keys = _up_to(numbers, _size(numbers, mask, -1) if mask is not None else _total(node, numbers))
        own = _positions(node, numbers)
        if left >= 0:  # a window beyond all sizes has no end, and no sum with it overflows
            windows.append(_at_most(own, keys + min(left, END)))
        if right >= 0:
            windows.append(_at_most(keys, own + min(right, END)))
    inputs = _inputs(node)
    if windows:
        inputs[MASK] = _both(node, op, mask, _all(op, windows))
    return op.same(*inputs, **gone)


@downgrade("Attention", at=24)
def mask_what_is_padding(node: Node, op: Emitter) -> Outcome:
    """The keys beyond the length of a member are masked, and those that are not causal; a short mask is filled up."""
    inputs, numbers = _inputs(node), Numbers(op)
    lengths, causal = inputs.pop(), node.attr("is_causal")
    inputs[MASK] = mask = _filled_up(node, numbers)
    if lengths is None:
        return op.same(*inputs, **_cap(node))
    keys = _up_to(numbers, _total(node, numbers))
    allowed = op.Less(keys.value, _by_member(numbers, lengths).value)
    if causal:
        allowed = _all(op, [allowed, _at_most(keys, _positions(node, numbers))])
    elif mask is None:  # runtimes want a row for each query
        allowed = op.Expand(allowed, numbers.vector([1, 1, numbers.size(node.input(QUERY), -2), 1]))
    inputs[MASK] = _both(node, op, mask, allowed)
    return op.same(*inputs, is_causal=None, **_cap(node))


def _cap(node: Node) -> dict[str, Any]:
    cap = node.attr("softcap")
    return {"softcap": -cap} if cap < 0 else {}


def _inputs(node: Node) -> list[Value | None]:
    """Returns all seven inputs, None for each that is left out."""
    return [*node.inputs, *[None] * 7][:7]


# ---- positions


def _size(numbers: Numbers, value: Value, axis: int) -> Number:
    """Returns the size along an axis that counts from the end, which is a scalar if it is computed."""
    known, op = known_size(value, axis), numbers.op
    return (
        numbers.of(known)
        if known is not None
        else numbers.computed(op.Gather(numbers.shape(value), op.const(axis)), 0, END)
    )


def _total(node: Node, numbers: Numbers) -> Number:
    """Returns the number of keys, those of the past included."""
    past, size = node.optional_input(PAST), _size(numbers, node.input(KEY), -2)
    return size if past is None else _size(numbers, past, -2) + size


def _up_to(numbers: Numbers, count: Number) -> Number:
    """Returns the vector 0, 1, 2 ..., as long as it is counted."""
    if count.known is not None:
        return numbers.up_to(count)
    op, end = numbers.op, count.value
    return numbers.of(
        op.Range(op.const(0), end if end.rank == 0 else op.at(11).Squeeze(end, axes=[0]), op.const(1)), 0, END
    )


def _positions(node: Node, numbers: Numbers) -> Number:
    """Returns the position of each query among the keys, as a column; for each member of the batch if their lengths
    differ."""
    op, count = numbers.op, _size(numbers, node.input(QUERY), -2)
    line = _up_to(numbers, count)
    own = line.along(0, 2) if line.known is not None else numbers.of(op.Unsqueeze(line.value, op.const([1])), 0, END)
    past, lengths = node.optional_input(PAST), node.optional_input(LENGTHS)
    if past is not None:
        return own + _size(numbers, past, -2)
    return own if lengths is None else own + _by_member(numbers, lengths) - count


def _by_member(numbers: Numbers, lengths: Value) -> Number:
    """Returns one number for each member of the batch. Not by Unsqueeze: inference takes what it makes for a shape."""
    return numbers.of(lengths).along(0, 4)


# ---- masks


def _at_most(one: Number, other: Number) -> Value:
    """Writes which numbers are not above others: as a constant if they are known and few."""
    if one.known is not None and other.known is not None and one.known.size * other.known.size <= WRITTEN:
        return one.numbers.op.const(one.known <= other.known, BOOL)
    return one.numbers.op.LessOrEqual(one.value, other.value)


def _all(op: Emitter, masks: Sequence[Value]) -> Value:
    """Writes what all masks let pass."""
    known = [mask.constant for mask in masks if mask.constant is not None]
    if len(known) == len(masks):
        return op.const(reduce(numpy.logical_and, known), BOOL)
    return reduce(op.And, masks)


def _both(node: Node, op: Emitter, mask: Value | None, allowed: Value) -> Value:
    """Writes a mask under which a key is seen if the given one lets it and it is allowed."""
    if mask is None:
        return allowed
    dtype = node.dtype(MASK)
    return op.And(mask, allowed) if dtype == BOOL else op.Where(allowed, mask, op.const(_nothing(node), dtype))


def _nothing(node: Node) -> float | bool:
    """Returns what a mask holds for a key that is not to be seen."""
    dtype = node.dtype(MASK)
    if is_integer(dtype):
        node.refuse("the mask is of integers, which have no value for a key that is masked", "cast it to float or bool")
    return False if dtype == BOOL else -inf


def _filled_up(node: Node, numbers: Numbers) -> Value | None:
    """Returns the mask, with as many columns as there are keys."""
    mask, keys, past = node.optional_input(MASK), node.input(KEY), node.optional_input(PAST)
    if mask is None or (mask.shape and keys.shape and past is None and mask.shape[-1] == keys.shape[-2] is not None):
        return mask
    missing = _total(node, numbers) - _size(numbers, mask, -1)
    if missing.number == 0:
        return mask
    op = numbers.op
    return op.Pad(
        mask,
        numbers.vector([0, numbers.one(missing.value)]),
        op.const(_nothing(node), node.dtype(MASK)),
        op.const([-1]),
    )
