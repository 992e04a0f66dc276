# SPDX-License-Identifier: Apache-2.0
"""The binary operators: Add, Sub, Mul, Div, Pow, And, Or, Xor, Equal, Greater, Less.

6: below, Add, Sub, Mul and Div have `consumed_inputs`, a hint about memory.
7: below, shapes are equal, or `broadcast` is 1: then B has one element, or its shape is a contiguous block of A's that
begins at `axis` (default: that ends where A's ends), and A is never stretched. From 7 on both are stretched as in numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.stretching import INT64, is_single, padded, rank_of, same_shape, stretched
from onnx_convert.registry import downgrade, upgrade
from onnx_convert.site import dtype_number

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Shape, Value

OPERATORS: Final = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
FLOAT: Final = dtype_number("float")

# What an operator is called when its inputs change places.
MIRRORED: Final = {
    **{operator: operator for operator in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}


@upgrade("Add", "Sub", "Mul", "Div", at=6)
def forget_memory_hint(node: Node, op: Emitter) -> Value:
    """`consumed_inputs` never changed a number."""
    return op.same(drop=["consumed_inputs"])


# ---- up


@upgrade(*OPERATORS, at=7)
def align_block(node: Node, op: Emitter) -> Value:
    """A block that is not the end of A's shape gets trailing axes of length 1; the attributes go."""
    a, b = node.input(0), node.input(1)
    if node.attr("broadcast"):
        b = _aligned(node, op, a, b, node.attr("axis", default=-1))
    return op.same(a, b, drop=["axis", "broadcast"])


def _aligned(node: Node, op: Emitter, a: Value, b: Value, axis: int) -> Value:
    if b.rank == 0:
        return b
    if a.rank is None or b.rank is None:
        if is_single(b):
            return _scalar(op, b)
        return b if axis == -1 else _aligned_at_run_time(op, a, b, axis)
    start = a.rank - b.rank if axis == -1 else axis
    missing = a.rank - b.rank - start
    if is_single(b):
        return b if b.rank <= a.rank else _scalar(op, b)
    if start < 0 or missing < 0:
        return _scalar(op, b)
    return op.Unsqueeze(b, axes=list(range(b.rank, b.rank + missing))) if missing else b


def _scalar(op: Emitter, x: Value) -> Value:
    return op.Reshape(x, op.const([]))


def _aligned_at_run_time(op: Emitter, a: Value, b: Value, axis: int) -> Value:
    """Appends rank(A) - axis - rank(B) ones to B's shape, none if that is below 0, as it may be if B has one element."""
    beyond = op.at(6).Sub(op.at(6).Sub(rank_of(op, a), rank_of(op, b)), op.const([axis], rank_of_dtype))
    missing = op.Cast(op.Relu(beyond), to=INT64)
    return op.Reshape(b, op.Concat(op.Shape(b), op.Tile(op.const([1]), missing), axis=0))
