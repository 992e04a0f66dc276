# SPDX-License-Identifier: Apache-2.0
"""Tile.

6: below, one axis is repeated: `tiles` and `axis` are scalars of the dtype of the data, which is a float. From 6 on
`repeats` says how often each axis is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, dtype_name, upgrade
from onnx_convert.adapters.lib.broadcast import rank_of
from onnx_convert.adapters.lib.dtypes import BFLOAT16, DOUBLE, FIRST_FLOATS, FLOAT, FLOAT16, INT64, is_integer, largest
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import known_size

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_EVERY_NUMBER: Final = {BFLOAT16: 2**8, FLOAT16: 2**11, FLOAT: 2**24, DOUBLE: 2**53}  # up to here a float holds it
_GIVE_SHAPES: Final = "give the model's inputs fixed shapes if it depends on these, or go no lower than opset 6"


@upgrade("Tile", at=6)
def count_every_axis(node: Node, op: Emitter) -> Value:
    """`repeats` is 1 for all axes but one."""
    x, axis, numbers = node.input(0), int(node.constant(2).item()), Numbers(op)
    count, rank = numbers.one(node.input(1)), x.rank
    if rank is not None:
        return op.same(x, numbers.vector(count if place == axis else 1 for place in range(rank)))
    beyond = op.Sub(rank_of(op, x), op.const([axis + 1], DOUBLE))
    after = op.Tile(op.const([1]), op.Cast(beyond, to=INT64))
    return op.same(x, op.Concat(op.const([1] * axis), count.value, after, axis=0))


@downgrade("Tile", at=6)
def repeat_axis_by_axis(node: Node, op: Emitter) -> Value:
    """A Tile for each repeated axis of floats; a Gather that takes the axis several times for other dtypes, and where
    the dtype does not hold the count."""
    x, counts = node.input(0), node.input(1).constant
    if counts is None:
        why = "how often each axis is repeated is computed (mostly from a shape) at run time, which opset 5 cannot do"
        node.refuse(why, _GIVE_SHAPES, unknown=True)
    y, dtype = x, x.dtype
    for axis, count in enumerate(counts.tolist()):
        length = known_size(x, axis)
        if count == 1:
            continue
        if length is not None and not (dtype in FIRST_FLOATS and _holds(dtype, count)):
            y = op.Gather(y, op.const(list(range(length)) * count), axis=axis)
            continue
        if not _holds(node.dtype(0), count):
            name = dtype_name(node.dtype(0))
            node.refuse(f"{name}, the dtype of the data, does not hold the count {count}", _GIVE_SHAPES, unknown=True)
        y = op.Tile(y, op.const(count, node.dtype(0)), op.const(axis, node.dtype(0)))
    return y


def _holds(dtype: int, count: int) -> bool:
    """Returns whether a dtype surely holds a count: every whole number of its precision is held, or up to its end."""
    return count <= _EVERY_NUMBER[dtype] if dtype in _EVERY_NUMBER else is_integer(dtype) and count <= largest(dtype)
