# SPDX-License-Identifier: Apache-2.0
"""Gemm.

7: below, C has the shape (M, N), or `broadcast` is 1 and C has one element or the shape (N,). From 7 on it is stretched
as in numpy.
11: below, C has to be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.broadcast import is_single, lengths, raise_by, rank_of, repeats, tiled
from onnx_convert.adapters.lib.dtypes import DOUBLE, is_integer
from onnx_convert.adapters.lib.shapes import size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Dim, Emitter, Node, Value
    from onnx_convert.adapters.lib.broadcast import Counts


@upgrade("Gemm", at=7)
def drop_broadcast(node: Node, op: Emitter) -> Value:
    """Drops `broadcast`: shapes that fitted go on to fit."""
    return op.same(drop=["broadcast"])


@downgrade("Gemm", at=7)
def shape_addend(node: Node, op: Emitter) -> Value:
    """A row (1, N) becomes (N,); what may be a column is repeated to (M, N)."""
    a, b, c = node.input(0), node.input(1), node.input(2)
    if is_single(c) or c.rank == 1:
        return op.same(broadcast=1)
    if c.shape is not None and c.shape[0] == 1:
        return op.same(a, b, op.Squeeze(c, axes=[0]), broadcast=1)
    row, column = node.attr("transA"), 1 - node.attr("transB")
    counts: Counts
    if c.shape is None:
        full, counts = raise_by(op, c, op.at(6).Sub(op.const([2], DOUBLE), rank_of(op, c))), [None]
    else:
        full, counts = c, [repeats(c.shape[0], [_dim(a, row)]), repeats(c.shape[1], [_dim(b, column)])]
    if None not in counts:
        return op.same(a, b, tiled(op, full, counts))
    sides = (size_at(op, lengths(op, x), axis) for x, axis in ((a, row), (b, column)))
    return op.same(a, b, tiled(op, full, counts, op.Shape(full), op.Concat(*sides, axis=0)))


def _dim(x: Value, axis: int) -> Dim:
    return x.shape[axis] if x.shape is not None else None


@downgrade("Gemm", at=11)
def add_nothing(node: Node, op: Emitter) -> Value:
    """A missing C becomes -0, the one number that changes no other when it is added, not even the sign of a zero."""
    a, b = node.input(0), node.input(1)
    if node.optional_input(2) is not None:
        return op.same()
    dtype = a.dtype or b.dtype or node.dtype(0)
    zero = 0 if is_integer(dtype) else -0.0
    return op.same(a, b, op.const(zero, dtype), beta=None)
