# SPDX-License-Identifier: Apache-2.0
"""DFT.

20: `axis` is an input, absent -2; below an attribute, absent 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.shapes import non_negative, part, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_LENGTH, _AXIS = 1, 2
_DEFAULT: Final = -2


@upgrade("DFT", at=20)
def axis_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant, also the default, which has changed."""
    axis = op.attribute_as_input("axis") or op.const(1)
    return op.same(node.input(0), node.optional_input(_LENGTH), axis, drop=("axis",))


@downgrade("DFT", at=20)
def axis_to_attribute(node: Node, op: Emitter) -> Value:
    """A constant axis becomes the attribute; for another one, what is before and after it become one dimension each."""
    x, length, axis = node.input(0), node.optional_input(_LENGTH), node.optional_input(_AXIS)
    known = axis.constant if axis is not None else None
    if axis is None or known is not None:
        return op.same(x, length, axis=_DEFAULT if known is None else int(known))
    one, shape = op.const([1]), op.Shape(x)
    place = non_negative(op, op.Reshape(axis, one), op.Shape(shape))
    before, after = op.Slice(shape, op.const([0]), place), op.Slice(shape, op.Add(place, one), op.const([-1]))
    outer, inner = (op.at(17).ReduceProd(sizes, axes=[0], keepdims=1) for sizes in (before, after))
    blocks = reshape(op, x, op.Concat(outer, op.Gather(shape, place, axis=0), inner, part(op, shape, -1), axis=0))
    y = op.same(blocks, length, axis=1)
    sizes = op.ScatterElements(shape, place, part(op, op.Shape(y), 1, 2), axis=0)
    parts = 1 if node.attr("inverse") and node.attr("onesided") else 2
    z = reshape(op, y, op.Concat(part(op, sizes, 0, -1), op.const([parts]), axis=0))
    # Takes all that is there, so that inference knows how much.
    return op.Gather(z, op.const(list(range(parts))), axis=x.rank - 1) if x.rank is not None else z
