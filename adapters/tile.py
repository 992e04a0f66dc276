# SPDX-License-Identifier: Apache-2.0
"""Tile.

6: `repeats`, one number an axis; below, `tiles` and `axis` for a single axis, both of the dtype of the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapters.shapes import INT64, ones_like, part
from onnx_convert.registry import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value


@upgrade("Tile", at=6)
def repeat_one_axis(node: Node, op: Emitter) -> Value:
    """The repeats are 1 but for the axis."""
    x, tiles, axis = node.input(0), node.input(1), node.input(2).constant
    ones = ones_like(op, op.Shape(x))
    many = tiles.constant
    count = op.const([int(many.item())]) if many is not None else op.Reshape(op.Cast(tiles, to=INT64), op.const([1]))
    if axis is None:
        here = op.at(7).Equal(op.const(list(range(node.rank(0)))), op.Cast(node.input(2), to=INT64))
        more = op.at(7).Mul(op.Cast(here, to=INT64), op.at(7).Sub(count, op.const([1])))
        return op.same(x, op.at(7).Add(ones, more))
    at = int(axis.item())
    if many is not None and x.rank is not None:
        return op.same(x, op.const([int(many.item()) if index == at else 1 for index in range(x.rank)]))
    parts = [part(op, ones, 0, at)] if at else []
    return op.same(x, op.Concat(*parts, count, part(op, ones, at + 1), axis=0))


@downgrade("Tile", at=6)
def repeat_axis_by_axis(node: Node, op: Emitter) -> Value:
    """One Tile for each axis that is repeated."""
    x, repeats, rank, dtype = node.input(0), node.input(1), node.rank(0), node.dtype(0)
    known = repeats.constant
    for axis in range(rank):
        if known is None:
            count = op.Cast(part(op, repeats, axis, axis + 1), to=dtype)
        elif known[axis] == 1:
            continue
        else:
            count = op.const([known[axis]], dtype)
        x = op.Tile(x, count, op.const([axis], dtype))
    return x
