# SPDX-License-Identifier: Apache-2.0
"""Attention. What changed later (24, 25) is told in `onnx_convert.adapters.attention`.

23: the operator is there. Scores are scaled by the root of `scale` on either side, so that they do not overflow; a
query for which every key is masked gives zeros.
"""

from __future__ import annotations

from math import copysign, inf, sqrt
from typing import TYPE_CHECKING

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, cast, lowest
from onnx_convert.adapters.lib.indices import WRITTEN, is_negative
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import known_size

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_QUERY, _KEY, _VALUE, _MASK, _PAST_KEY, _PAST_VALUE = range(6)
_PRESENT_KEY, _PRESENT_VALUE, _SCORES = range(1, 4)


@downgrade("Attention", at=23)
def attend_by_softmax(node: Node, op: Emitter) -> tuple[Value | None, ...]:
    """Softmax of the masked products of queries and keys, times the values."""
    op.equivalent("products and Softmax are operators of their own")
    dtype, rank = node.dtype(_QUERY), _rank(node)
    numbers = Numbers(op)
    query = _by_head(node, numbers, _QUERY, "q_num_heads")
    key, value = (_by_head(node, numbers, index, "kv_num_heads") for index in (_KEY, _VALUE))
    keys, values = _with_past(node, op, key, _PAST_KEY), _with_past(node, op, value, _PAST_VALUE)
    shared = _shared(node, numbers, query, keys)
    left, right = _scales(node, numbers, query)
    turned = op.Transpose(_gathered(op, keys, shared), perm=[0, 1, 3, 2])
    scores = op.MatMul(op.Mul(query, left), op.Mul(turned, right))
    stages, cap = [scores], node.attr("softcap")
    if cap:
        limit = op.const(cap, dtype)
        scores = op.Mul(op.Tanh(op.Div(scores, limit)), limit)
    stages.append(scores)
    bias = _bias(node, numbers, query, keys)
    scores = scores if bias is None else op.Add(scores, bias)
    precision = node.attr("softmax_precision") or dtype
    shares = op.at(13).Softmax(cast(op, scores, precision), axis=-1)
    if bias is not None and node.optional_input(_MASK) is not None:
        # Nothing but infinities is below the lowest number.
        least = op.const(lowest(dtype), dtype)
        blind = op.Less(op.at(13).ReduceMax(bias, axes=[-1], keepdims=1), least)
        shares = op.Where(blind, op.const(0, precision), shares)
    shares = cast(op, shares, dtype)
    stages += [scores, shares]
    y = op.MatMul(shares, cast(op, _gathered(op, values, shared), dtype))
    if rank == 3:
        whole = numbers.vector([0, 0, numbers.size(value, 3) * node.attr("q_num_heads")])
        y = op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), whole)
    chosen = stages[node.attr("qk_matmul_output_mode") or 0]
    return y, keys, values, chosen


def _rank(node: Node) -> int:
    """Returns 3, with the heads side by side, or 4. If nobody knows it is 4 where the numbers of heads are left out."""
    ranks = [node.input(index).rank for index in (_QUERY, _KEY, _VALUE)]
    known = next((rank for rank in (*ranks, node.output().rank) if rank is not None), None)
    if known is not None:
        return known
    return node.rank(_QUERY) if node.has("q_num_heads") else 4


def _by_head(node: Node, numbers: Numbers, index: int, heads: str) -> Value:
    """Writes an input as [batch, heads, sequence, head size]."""
    x = node.input(index)
    if _rank(node) == 4:
        return x
    count = node.attr(heads)
    if not count:
        node.invalid(f"{heads} is missing", "add the attribute")
    op, shape = numbers.op, numbers.vector([0, 0, count, numbers.size(x, 2) // count])  # no -1: the batch may be empty
    return op.Transpose(op.Reshape(x, shape), perm=[0, 2, 1, 3])


def _with_past(node: Node, op: Emitter, now: Value, index: int) -> Value:
    past = node.optional_input(index)
    return now if past is None else op.Concat(past, now, axis=2)


# ---- heads that share their keys


def _shared(node: Node, numbers: Numbers, query: Value, keys: Value) -> Value | None:
    """Returns for each head of the queries the head of the keys that it shares; None where each has one of its own."""
    own, others = (
        numbers.of(node.attr(heads)) if _rank(node) == 3 else numbers.size(x, 1)
        for heads, x in (("q_num_heads", query), ("kv_num_heads", keys))
    )
    if own.number == others.number is not None:
        return None
    return (numbers.up_to(own) // (own // others)).value


def _gathered(op: Emitter, x: Value, heads: Value | None) -> Value:
    return x if heads is None else op.Gather(x, heads, axis=1)


# ---- scores


def _scales(node: Node, numbers: Numbers, query: Value) -> tuple[Value, Value]:
    """Returns what the queries and what the keys are multiplied by."""
    op, dtype, given, size = numbers.op, node.dtype(_QUERY), node.attr("scale"), known_size(query, 3)
    if given is None and size is not None:
        given = 1 / sqrt(size) if size else 0.0
    if given is None:
        scale = op.Reciprocal(op.Sqrt(op.Sqrt(numbers.size(query, 3).in_dtype(dtype))))
        return scale, scale
    magnitude = sqrt(abs(given))
    return op.const(copysign(magnitude, given), dtype), op.const(magnitude, dtype)


def _bias(node: Node, numbers: Numbers, query: Value, keys: Value) -> Value | None:
    """Writes what is added to the scores: minus infinity for a key that is not seen."""
    op, mask, dtype = numbers.op, node.optional_input(_MASK), node.dtype(_QUERY)
    hidden = _ahead(node, numbers, query, keys) if node.attr("is_causal") else None
    nothing, never = op.const(0, dtype), op.const(-inf, dtype)
    if mask is None and hidden is not None and (known := hidden.constant) is not None:
        return op.const(numpy.where(known, -inf, 0), dtype)
    if mask is None:
        return None if hidden is None else op.Where(hidden, never, nothing)
    width, total = known_size(mask, -1), known_size(keys, 2)
    if width not in (None, 1, total) and total is not None:
        node.invalid(f"its mask is for {width} keys, and there are {total}", "make the mask as wide as there are keys")
    if node.dtype(_MASK) == BOOL:
        bias = op.Where(mask, nothing, never)
    else:
        bias = cast(op, mask, dtype)
    return bias if hidden is None else op.Where(hidden, never, bias)


def _ahead(node: Node, numbers: Numbers, query: Value, keys: Value) -> Value:
    """Writes which keys come after a query: those of the past are before all. A small matrix is written down."""
    op, past = numbers.op, node.optional_input(_PAST_KEY)
    own = numbers.row(numbers.size(query, 2)).transposed() + (0 if past is None else numbers.size(past, 2))
    others = numbers.row(numbers.size(keys, 2))
    if own.known is None or others.known is None:
        return is_negative(op, (own - others).value)
    if own.known.size * others.known.size <= WRITTEN:
        return op.const(own.known < others.known, BOOL)
    return op.Less(own.in_dtype(FLOAT), others.in_dtype(FLOAT))
