# SPDX-License-Identifier: Apache-2.0
"""Unique, which is there from 11 on, of numbers in a row: they are put in order, and neighbours compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.decompose.places import DOUBLE, flat, places
from onnx_convert.adapters.shapes import FLOAT, INT64, are_zero, part
from onnx_convert.registry import downgrade
from onnx_convert.types import dtype_name

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value

# TopK knows no integers below 11, and onnxruntime no double there. 64 bits are the business of the Cast sandwich.
_CARRIERS: Final = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), FLOAT),
    **dict.fromkeys(("int32", "uint32"), DOUBLE),
}


@downgrade("Unique", at=11)
def compare_neighbours_in_order(node: Node, op: Emitter) -> tuple[Value | None, ...]:
    """TopK keeps equal elements in their order, so the first of each group is the first in the input."""
    x = node.input(0)
    if dtype_name(node.dtype(0)) == "string":
        node.refuse("its elements are strings, which nothing below opset 11 puts in order", "go no lower than opset 11")
    if node.attr("axis") is not None and node.rank(0) != 1:
        node.refuse("it compares slices along an axis, and there is no replacement for that yet", "flatten the input")
    elements = flat(op, x)
    length, numbers = op.Shape(elements), places(op, elements, 0)
    carrier = _CARRIERS.get(dtype_name(node.dtype(0)))
    sortable = elements if carrier is None else op.Cast(elements, to=carrier)
    ordered, origin = op.node("TopK", sortable, length, outputs=2, at=11, axis=0, largest=0)
    before = op.Concat(part(op, ordered, 0, 1), part(op, ordered, 0, -1), axis=0)
    changes = op.Not(op.at(11).Equal(ordered, before))
    starts = op.Squeeze(op.NonZero(op.Or(changes, are_zero(op, numbers))), axes=[0])
    first, group, counts = op.Gather(origin, starts), None, None
    if node.is_read(3):
        counts = op.Sub(op.Concat(part(op, starts, 1), length, axis=0), starts)
    in_order = node.attr("sorted")
    if node.is_read(2) or not in_order:
        group = op.at(11).CumSum(op.Cast(changes, to=INT64), op.const(0))
        group = op.Scatter(group, origin, group, axis=0)
    if group is not None and not in_order:  # in the order of their first occurrence
        marks = op.Scatter(op.Mul(numbers, op.const([0])), first, op.Add(op.Mul(first, op.const([0])), op.const([1])))
        first = op.Squeeze(op.NonZero(marks), axes=[0])
        place = op.Gather(group, first)
        counts = counts and op.Gather(counts, place)
        group = op.Gather(op.Scatter(place, place, places(op, place, 0), axis=0), group)
    return op.Gather(elements, first), first, group, counts
