# SPDX-License-Identifier: Apache-2.0
"""Det, which is there from 11 on: column after column is eliminated, with the largest element of each as the pivot."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.bodies import tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, INT64, cast, working_dtype
from onnx_convert.adapters.lib.indices import fixed, into, places, scalar
from onnx_convert.adapters.lib.shapes import END, known_size, part, product, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_WRITTEN: Final = 4  # columns whose elimination is written out


@downgrade("Det", at=11)
def eliminate_column_by_column(node: Node, op: Emitter) -> Value:
    """The product of the pivots, negative for an odd number of exchanged rows. For small matrices all steps are written
    out, for others there is a Loop."""
    op.equivalent("the elimination is written out, and may round otherwise")
    x, dtype = node.input(0), node.dtype(0)
    work, size = working_dtype(dtype), known_size(x, -1)
    batch = x.shape[:-2] if x.shape is not None else None
    known = fixed(batch)
    if size == 0:
        one = op.const(1, dtype)
        return op.at(8).Expand(one, op.const(known) if known is not None else part(op, op.Shape(x), 0, -2))
    sizes = None if size is None else (None if known is None else prod(known), size, size)
    matrices = cast(op, x if x.rank == 3 else into(op, x, sizes, lambda: _collapsed(op, x)), work)
    if size is None or size > _WRITTEN:
        op.large("a Loop that eliminates a column in every step")
        total = _looped(op, matrices, work)
    else:
        pivots = []
        for left in range(size, 1, -1):
            matrices, pivot = _eliminated(op, matrices, op.const(range(left)), work)
            pivots.append(pivot)
        total = reduce(op.Mul, [*pivots, matrices])
    if x.rank == 3:
        return cast(op, op.Squeeze(total, axes=[1, 2]), dtype)
    return cast(op, into(op, total, batch, lambda: part(op, op.Shape(x), 0, -2)), dtype)


def _collapsed(op: Emitter, x: Value) -> Value:
    """Returns the shape of a value with all axes but the last two made one."""
    shape = op.Shape(x)
    return op.Concat(product(op, part(op, shape, 0, -2)), part(op, shape, -2), axis=0)


def _looped(op: Emitter, matrices: Value, dtype: int) -> Value:
    shape = op.Shape(matrices)
    ones = op.Expand(op.const(1, dtype), op.Concat(size_at(op, shape, 0), op.const([1, 1]), axis=0))
    kinds = (tensor_type(dtype, None, None, None), tensor_type(INT64, None), tensor_type(dtype, None, 1, 1))

    def step(inner: Emitter, _: Value, going: Value, *carried: Value) -> tuple[Value, ...]:
        matrices, numbers, so_far = carried
        smaller, pivot = _eliminated(inner, matrices, numbers, dtype)
        return going, smaller, _cut(inner, numbers, 0, 0, -1), inner.Mul(so_far, pivot)

    body = op.graph("step", (INT64, BOOL, *kinds), step)
    start = (op.const(True, BOOL), matrices, places(op, matrices, 1), ones)
    return op.node("Loop", scalar(op, size_at(op, shape, 1)), *start, outputs=3, body=body)[2]


def _eliminated(op: Emitter, matrices: Value, numbers: Value, dtype: int) -> tuple[Value, Value]:
    """Returns matrices [batch, n, n] without the first column and the row of its largest element, for which the first
    row stands in; and that element, the pivot. `numbers` are those of the rows."""
    column = _cut(op, matrices, 2, 0, 1)
    place = op.ArgMax(op.Abs(column), axis=1, keepdims=1)
    hit = op.Equal(op.Unsqueeze(numbers, axes=[1]), place)
    row = op.ReduceSum(op.Where(hit, matrices, op.const(0, dtype)), axes=[1], keepdims=1)
    pivot = _cut(op, row, 2, 0, 1)
    others = op.Where(_cut(op, hit, 1, 1), _cut(op, matrices, 1, 0, 1), _cut(op, matrices, 1, 1))
    is_zero = op.Cast(op.Not(op.Cast(pivot, to=BOOL)), to=dtype)  # then there is nothing to eliminate
    factors = op.Div(_cut(op, others, 2, 0, 1), op.Add(pivot, is_zero))
    smaller = op.Sub(_cut(op, others, 2, 1), op.Mul(factors, _cut(op, row, 2, 1)))
    stays = op.Cast(_cut(op, hit, 1, 0, 1), to=dtype)
    sign = op.Sub(op.Add(stays, stays), op.const(1, dtype))
    return smaller, op.Mul(pivot, sign)


def _cut(op: Emitter, x: Value, axis: int, start: int, end: int = END) -> Value:
    return op.Slice(x, op.const([start]), op.const([end]), op.const([axis]))
