# SPDX-License-Identifier: Apache-2.0
"""Equal, where the dtype decides (how its inputs are stretched is told in `broadcasting`).

11: below, it takes bool, int32 and int64 only.
19: below, it does not take strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import FIRST_FLOATS, STRING
from onnx_convert.adapters.lib.indices import flat, like
from onnx_convert.adapters.lib.shapes import END

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@downgrade("Equal", at=11)
def compare_floats_by_order(node: Node, op: Emitter) -> Value:
    """Floats are equal if none is less or greater and none is NaN.

    The sum shows a NaN in either of them. It is one for opposite infinities too, which are not equal anyway.
    """
    a, b = node.input(0), node.input(1)
    dtype = a.dtype or b.dtype or node.dtype(0)
    if dtype not in FIRST_FLOATS:
        return op.same()
    total = op.Add(a, b)
    ordered = op.Or(op.Less(total, op.const(1, dtype)), op.Greater(total, op.const(0, dtype)))
    return op.And(ordered, op.Not(op.Or(op.Less(a, b), op.Greater(a, b))))


@downgrade("Equal", at=19)
def compare_strings_by_rank(node: Node, op: Emitter) -> Value:
    """Strings are numbered in one Unique of both inputs, and the numbers compared."""
    a, b = node.input(0), node.input(1)
    if STRING not in (a.dtype, b.dtype):
        return op.same()
    flat_a, flat_b = flat(op, a), flat(op, b)
    number = op.node("Unique", op.Concat(flat_a, flat_b, axis=0), outputs=3)[2]
    border = op.Shape(flat_a)
    first = op.Slice(number, op.const([0]), border)
    second = op.Slice(number, border, op.const([END]))
    return op.same(like(op, first, a), like(op, second, b))
