# SPDX-License-Identifier: Apache-2.0
"""Stretches values to a common shape as numpy does, for an operator that does not do it by itself.

A value of lower rank gets leading axes of length 1; then every axis of length 1 is repeated. Where lengths are unknown,
the repeats are found at run time: the common length where the own one is 1, else 1, which holds for a length of 0 too.
They are computed in double, the one dtype for that at every opset. All nodes are written for opset 6.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from onnx_convert.adapters.lib.dtypes import DOUBLE, INT64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx_convert.adapter import Dim, Emitter, Shape, Value

    Counts = Sequence[int | None]  # how often each axis is repeated; None: only the run tells


# ---- what is known beforehand


def same_shape(a: Value, b: Value) -> bool:
    """Returns whether two values are known to have the same shape at every run."""
    return a.name == b.name or (a.shape is not None and a.shape == b.shape and None not in a.shape)


def is_single(x: Value) -> bool:
    """Returns whether a value is known to have one element, whatever its rank."""
    return x.shape is not None and all(dim == 1 for dim in x.shape)


def padded(shape: Shape, rank: int) -> Shape:
    """Returns a shape with leading ones up to a rank."""
    return (1,) * (rank - len(shape)) + shape


def repeats(own: Dim, others: Sequence[Dim]) -> int | None:
    """Returns how often an axis is repeated that meets axes of other lengths; None if only the run tells."""
    if all(dim == 1 or (dim == own and dim is not None) for dim in others):
        return 1
    if isinstance(own, int) and own != 1:
        return 1
    fixed = next((dim for dim in others if isinstance(dim, int) and dim != 1), None)
    return fixed if own == 1 else None


# ---- the nodes


def stretched(op: Emitter, *values: Value) -> list[Value]:
    """Writes values, each repeated to the shape that they have in common."""
    known = [value.shape for value in values if value.shape is not None]
    counts: list[Counts]
    if len(known) == len(values):
        rank = max(map(len, known))
        raised = [raise_to(op, value, rank) for value in values]
        axes = list(zip(*(padded(shape, rank) for shape in known), strict=True))
        counts = [[repeats(dims[i], dims[:i] + dims[i + 1 :]) for dims in axes] for i in range(len(values))]
    else:
        raised = _raised(op, values)
        counts = [[None]] * len(values)
    if not any(None in row for row in counts):
        return [tiled(op, x, row) for x, row in zip(raised, counts, strict=True)]
    shapes = [op.at(6).Shape(x) for x in raised]
    common = shapes[::-1] if len(shapes) == 2 else [reduce(lambda a, b: _common(op, a, b), shapes)] * len(shapes)
    return [tiled(op, *each) for each in zip(raised, counts, shapes, common, strict=True)]


def tiled(op: Emitter, x: Value, counts: Counts, own: Value | None = None, common: Value | None = None) -> Value:
    """Writes a value with its axes repeated; if a count is missing, all are found from its own and the common shape."""
    if all(count == 1 for count in counts):
        return x
    if own is None or common is None or None not in counts:
        return op.at(6).Tile(x, op.const(counts))
    once = op.const([1], DOUBLE)
    more = op.at(6).Mul(_is_one(op, own), op.at(6).Sub(_double(op, common), once, broadcast=1))
    return op.at(6).Tile(x, op.at(6).Cast(op.at(6).Add(more, once, broadcast=1), to=INT64))


def raise_to(op: Emitter, x: Value, rank: int) -> Value:
    """Writes a value of known rank with leading axes of length 1 up to a rank."""
    missing = rank - len(x.shape or ())
    return op.at(6).Unsqueeze(x, axes=list(range(missing))) if missing else x


def raise_by(op: Emitter, x: Value, count: Value) -> Value:
    """Writes a value of any rank with as many leading axes of length 1 as the one element of a double vector says.

    A Gather does that for every shape; a Reshape would take a length of 0 for a copy of another one.
    """
    ones = op.at(6).Tile(op.const([1]), op.at(6).Cast(count, to=INT64))
    return op.at(6).Gather(op.at(6).Unsqueeze(x, axes=[0]), op.at(6).Reshape(op.const([0]), ones), axis=0)


def lengths(op: Emitter, x: Value) -> Value:
    """Writes the shape of a value, as a vector of double."""
    return _double(op, op.at(6).Shape(x))


def rank_of(op: Emitter, x: Value) -> Value:
    """Writes the rank of a value, as a vector of one double."""
    if x.rank is not None:
        return op.const([x.rank], DOUBLE)
    return lengths(op, op.at(6).Shape(x))


def _raised(op: Emitter, values: Sequence[Value]) -> list[Value]:
    ranks = [rank_of(op, value) for value in values]
    highest = op.at(6).Max(*ranks)
    return [raise_by(op, x, op.at(6).Sub(highest, rank)) for x, rank in zip(values, ranks, strict=True)]


def _common(op: Emitter, a: Value, b: Value) -> Value:
    """Writes the common shape of two shapes, in double: a, but b where a is 1."""
    own = _double(op, a)
    difference = op.at(6).Sub(_double(op, b), own)
    return op.at(6).Add(own, op.at(6).Mul(_is_one(op, a), difference))


def _is_one(op: Emitter, shape: Value) -> Value:
    whole = shape if shape.dtype != DOUBLE else op.at(6).Cast(shape, to=INT64)
    return op.at(6).Cast(op.at(6).Equal(whole, op.const([1]), broadcast=1), to=DOUBLE)


def _double(op: Emitter, shape: Value) -> Value:
    return shape if shape.dtype == DOUBLE else op.at(6).Cast(shape, to=DOUBLE)
