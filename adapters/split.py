# SPDX-License-Identifier: Apache-2.0
"""Split (negative axes are told in `negative_axes`).

2: below, `axis` has no default, and the sizes may also come as a second input, a float like the data.
13: `split`, the sizes of the parts, is an input; below, an attribute.
18: `num_outputs` cuts into equal parts, of which the last may be smaller; one of it and `split` is required. Below,
parts without sizes are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.lib.dtypes import INT64
from onnx_convert.adapters.lib.shapes import known_size, part, size_at
from onnx_convert.registry import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value

_SIZES: Final = 1


@upgrade("Split", at=2)
def sizes_from_floats(node: Node, op: Emitter) -> Value | tuple[Value, ...]:
    """An absent axis is 0. Sizes in an input become the attribute, or int64 if they are computed."""
    x, sizes = node.input(0), node.optional_input(_SIZES)
    if sizes is None:
        return op.same(x)
    known = sizes.constant
    if known is not None:
        return op.same(x, split=[int(size) for size in known])
    whole = op.at(6).Cast(sizes, to=INT64)
    return op.node("Split", x, whole, outputs=len(node.proto.output), at=13, axis=node.attribute("axis"))


@downgrade("Split", at=2)
def spell_out_axis(node: Node, op: Emitter) -> Value:
    """An absent axis is 0."""
    return op.same() if node.has("axis") else op.same(axis=0)


@upgrade("Split", at=13)
def sizes_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant."""
    sizes = op.attribute_as_input("split")
    return op.same() if sizes is None else op.same(node.input(0), sizes, drop=("split",))


@downgrade("Split", at=13)
def sizes_to_attribute(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """Constant sizes become the attribute; with others each part is a Slice that ends where the next one starts."""
    x, sizes = node.input(0), node.optional_input(_SIZES)
    if sizes is None:
        return op.same(x)
    known = sizes.constant
    if known is not None:
        return op.same(x, split=known.tolist())
    axis, start = op.const([node.attr("axis")]), op.const([0])
    parts: list[Value | None] = []
    for index in range(len(node.proto.output)):
        size = part(op, sizes, index, index + 1)
        end = op.at(7).Add(start, size) if index else size
        parts.append(op.Slice(x, start, end, axis) if node.uses_output(index) else None)
        start = end
    return tuple(parts)


@upgrade("Split", at=18)
def spell_out_number(node: Node, op: Emitter) -> Value:
    """Without sizes, the number of parts is that of the outputs."""
    if node.optional_input(_SIZES) is not None:
        return op.same()
    return op.same(node.input(0), num_outputs=len(node.proto.output))


@downgrade("Split", at=18)
def number_to_sizes(node: Node, op: Emitter) -> Value:
    """Equal parts need no number; where the last one is or may be smaller, the sizes are given."""
    x, number, axis = node.input(0), len(node.proto.output), node.attr("axis")
    if node.optional_input(_SIZES) is not None or number == 1:
        return op.same(*node.inputs, drop=("num_outputs",))
    length = known_size(x, axis)
    if length is not None and length % number == 0:
        return op.same(x, drop=("num_outputs",))
    if length is not None and (last := length - (number - 1) * (size := -(-length // number))) >= 0:
        return op.same(x, op.const([size] * (number - 1) + [last]), drop=("num_outputs",))
    # Too few elements for so many parts is an error, but only when the node is run: it may stand in an unused branch.
    return op.same(x, _sizes(op, size_at(op, op.Shape(x), axis), number), drop=("num_outputs",))


def _sizes(op: Emitter, length: Value, number: int) -> Value:
    """The sizes of so many parts: the length divided, rounded up, and for the last one what is left."""
    size = op.at(7).Div(op.at(7).Add(length, op.const([number - 1])), op.const([number]))
    last = op.at(7).Sub(length, op.at(7).Mul(size, op.const([number - 1])))
    return op.Concat(*[size] * (number - 1), last, axis=0)
