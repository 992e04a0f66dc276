# SPDX-License-Identifier: Apache-2.0
"""Reshape, Flatten.

5: `shape` is an input; below, an attribute, and `consumed_inputs` a hint about memory.
11: `axis` of Flatten may be negative.
14: `allowzero=1` makes a 0 in `shape` a size of 0; otherwise, and always below, it copies the size of the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import BOOL, INT64
from onnx_convert.adapters.lib.shapes import collapse, never_empty, ones_like, part

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Shape, Value


@upgrade("Reshape", at=5)
def shape_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant."""
    shape = op.attribute_as_input("shape")
    if shape is None:
        node.invalid("attribute shape is missing", "add the attribute")
    return op.same(node.input(0), shape, drop=("shape", "consumed_inputs"))


@downgrade("Reshape", at=5)
def shape_to_attribute(node: Node, op: Emitter) -> Value:
    """A constant shape becomes the attribute, and so does one that 0 (copy) and one -1 (the rest) can spell."""
    known = node.input(1).constant
    shape = known.tolist() if known is not None else _constant_target(node)
    return op.same(node.input(0), shape=node.constant(1).tolist() if shape is None else shape)


def _constant_target(node: Node) -> list[int] | None:
    """Returns the shape of the output as a constant, where at most one size is neither known nor the input's."""
    target, source = node.output().shape, node.input(0).shape or ()
    if target is None:
        return None
    kept = [source[index : index + 1] == (size,) and size is not None for index, size in enumerate(target)]
    shape = [0 if own else size if isinstance(size, int) else -1 for own, size in zip(kept, target, strict=True)]
    # A 0 that is not the input's own size would copy another one; beside one that is, nothing is left to find.
    is_right = all(size != 0 or (own and -1 not in shape) for own, size in zip(kept, target, strict=True))
    return shape if shape.count(-1) <= 1 and is_right else None


@downgrade("Reshape", at=14)
def zero_from_an_empty_input(node: Node, op: Emitter) -> Value:
    """Where the shape may hold a 0, the input is emptied along that dimension first: then there is a 0 to copy. Not
    where the input has that size there anyway; and -1 finds the only size that is not known, if no other one is 0."""
    x, shape, gone = node.input(0), node.input(1), ("allowzero",)
    known = shape.constant
    sizes: Shape | None = node.output().shape if known is None else tuple(known.tolist())
    doubtful = _doubtful(sizes, x.shape or ())
    if not node.attr("allowzero") or never_empty(x) or doubtful == [] or _leaves_one_open(node):
        return op.same(drop=gone)
    if sizes is not None and doubtful is not None and len(doubtful) == 1:
        target = [-1 if index in doubtful else size for index, size in enumerate(sizes)]
        if all(isinstance(size, int) and size for size in target):
            return op.same(x, op.const(target), drop=gone)
    some = op.Cast(op.Cast(shape, to=BOOL), to=INT64) if known is None else op.const(known != 0)  # 0 for a 0, else 1
    return op.same(op.Tile(op.Reshape(x, _line(op, shape)), some), shape, drop=gone)


def _doubtful(sizes: Shape | None, source: Shape) -> list[int] | None:
    """Returns the dimensions that may be 0 while those of the input are not; None if their number is not known."""
    if sizes is None:
        return None
    same = [size is not None and source[index : index + 1] == (size,) for index, size in enumerate(sizes)]
    return [index for index, size in enumerate(sizes) if not same[index] and not (isinstance(size, int) and size)]


def _leaves_one_open(node: Node) -> bool:
    """Returns whether the shape is put together with a -1, beside which there can be no 0."""
    producer = node.input(1).producer
    if producer is None or producer.operator != "Concat":
        return False
    return any((known := value.constant) is not None and -1 in known for value in producer.inputs if value)


def _line(op: Emitter, shape: Value) -> Value:
    """Returns [-1, 1, ..., 1], as long as a shape."""
    length = shape.shape[0] if shape.shape else None
    if isinstance(length, int):
        return op.const([-1, *[1] * (length - 1)] if length else [])
    return part(op, op.at(4).Concat(op.const([-1]), ones_like(op, shape), axis=0), 0, -1)


# ---- Flatten


@downgrade("Flatten", at=11)
def flatten_at_positive_axis(node: Node, op: Emitter) -> Value:
    """A negative axis counts from the end of a known rank; of an unknown one, what is before it is made a row first."""
    x, axis = node.input(0), node.attr("axis")
    if axis >= 0:
        return op.same()
    if x.rank is not None:
        return op.same(axis=axis + x.rank)
    flat, _ = collapse(op, x, -axis)
    return op.same(flat, axis=1)
