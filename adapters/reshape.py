# SPDX-License-Identifier: Apache-2.0
"""Reshape.

5: `shape` is an input; below, an attribute, and `consumed_inputs` a hint about memory.
14: `allowzero=1` makes a 0 in `shape` a size of 0; otherwise, and always below, it copies the size of the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapters.shapes import INT64, are_zero, never_empty, ones_like, part
from onnx_convert.registry import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value


@upgrade("Reshape", at=5)
def shape_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant."""
    shape = op.attribute_as_input("shape")
    if shape is None:
        node.refuse("attribute shape is missing", "the model is not valid: add the attribute")
    return op.same(node.input(0), shape, drop=("shape", "consumed_inputs"))


@downgrade("Reshape", at=5)
def shape_to_attribute(node: Node, op: Emitter) -> Value:
    """A constant shape becomes the attribute, and so does one that 0 (copy) and one -1 (the rest) can spell."""
    known = node.input(1).constant
    shape = known.tolist() if known is not None else _spelled(node)
    return op.same(node.input(0), shape=node.constant(1).tolist() if shape is None else shape)


def _spelled(node: Node) -> list[int] | None:
    """The shape of the output as a constant, where at most one size is neither known nor the input's."""
    target, source = node.output().shape, node.input(0).shape or ()
    if target is None:
        return None
    shape = [
        0
        if index < len(source) and size is not None and size == source[index]
        else size
        if isinstance(size, int)
        else -1
        for index, size in enumerate(target)
    ]
    empty = any(size == 0 != shape[index] for index, size in enumerate(target))
    return None if shape.count(-1) > 1 or empty else shape


@downgrade("Reshape", at=14)
def zero_from_an_empty_input(node: Node, op: Emitter) -> Value:
    """Where the shape may hold a 0, the input is emptied along that dimension first: then there is a 0 to copy."""
    x, shape = node.input(0), node.input(1)
    known = shape.constant
    if not node.attr("allowzero") or never_empty(x) or (known is not None and all(known)):
        return op.same(drop=("allowzero",))
    if known is not None:
        rest = next((index for index, size in enumerate(known) if size), 0)
        line = op.const([-1 if index == rest else 1 for index in range(len(known))])
        some = op.const([int(size != 0) for size in known])
    else:
        ones = ones_like(op, shape)
        line = part(op, op.at(4).Concat(op.const([-1]), ones, axis=0), 0, -1)  # [-1, 1, ..., 1], as long as the shape
        some = op.at(7).Sub(ones, op.Cast(are_zero(op, shape), to=INT64))  # 0 for a 0, else 1
    return op.same(op.Tile(op.Reshape(x, line), some), shape, drop=("allowzero",))
