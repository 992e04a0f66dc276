# SPDX-License-Identifier: Apache-2.0
"""Shape arithmetic at run time, for adapters that meet a value of unknown rank or shape.

Everything is written in forms that exist from opset 1 or 5 on (Slice with attributes, ReduceProd with attributes), and
carried to the target from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Value

END: Final = 2**31 - 1


def part(op: Emitter, vector: Value, start: int, end: int = END) -> Value:
    """Elements `start` to `end` of a 1-D value; negative numbers count from its end."""
    return op.at(9).Slice(vector, axes=[0], starts=[start], ends=[end])


def rows(op: Emitter, shape: Value) -> Value:
    """The shape [-1, last] for a value of the given shape."""
    return op.Concat(op.const([-1]), part(op, shape, -1), axis=0)


def three_dimensions(op: Emitter, shape: Value, axis: int) -> Value:
    """The shape [product of what is before the axis, the axis, -1] for a value of the given shape."""
    length = part(op, shape, axis, axis + 1 or END)
    if axis == 0:
        before = op.const([1])
    else:
        before = op.at(10).ReduceProd(part(op, shape, 0, axis), axes=[0], keepdims=1)
    return op.Concat(before, length, op.const([-1]), axis=0)
