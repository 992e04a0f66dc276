# SPDX-License-Identifier: Apache-2.0
"""Squeeze, Unsqueeze.

11: axes may be negative; Unsqueeze takes them in any order.
13: `axes` is an input; below, an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import INT64
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import are_zero, chosen, named, positions, reshape

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.adapter import Emitter, Node, Outcome, Value


@upgrade("Squeeze", "Unsqueeze", at=13)
def axes_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant; where Squeeze has none, all axes of size 1 go, as before."""
    axes = op.attribute_as_input("axes")
    return op.same() if axes is None else op.same(node.input(0), axes, drop=("axes",))


@downgrade("Squeeze", at=13)
def squeeze_axes_to_attribute(node: Node, op: Emitter) -> Value:
    """Constant axes become the attribute; others choose the sizes that stay at run time."""
    x, axes = node.input(0), node.optional_input(1)
    if axes is None:
        return op.same(x)
    known = axes.constant
    return _squeeze(op, x, axes) if known is None else op.same(x, axes=sorted(known.ravel().tolist()))


@downgrade("Unsqueeze", at=13)
def unsqueeze_axes_to_attribute(node: Node, op: Emitter) -> Value:
    """Constant axes become the attribute; others say at run time where a 1 stands in the new shape."""
    x, axes = node.input(0), node.input(1)
    known = axes.constant
    return _unsqueeze(op, x, axes) if known is None else op.same(x, axes=known.ravel().tolist())


def _squeeze(op: Emitter, x: Value, axes: Value) -> Value:
    shape = Numbers(op).sizes(x).value
    return reshape(op, x, chosen(op, shape, are_zero(op, named(op, axes, shape))))


def _unsqueeze(op: Emitter, x: Value, axes: Value) -> Value:
    """Reshapes x: the new size at a position is 1 where an axis is named, else that of the old dimension which lands
    there."""
    shape = Numbers(op).sizes(x).value
    dims = op.at(4).Concat(shape, axes, axis=0)  # as long as the new shape
    new = named(op, axes, dims)
    landing = op.Transpose(op.at(9).NonZero(are_zero(op, new)), perm=[1, 0])  # of each old dimension
    lands = op.Cast(op.at(7).Equal(landing, positions(op, dims)), to=INT64)
    sizes = op.at(7).Mul(lands, op.at(10).Unsqueeze(shape, axes=[1]))
    return reshape(op, x, op.at(7).Add(op.at(10).ReduceSum(sizes, axes=[0], keepdims=0), new))


@downgrade("Squeeze", at=11)
def squeeze_positive_axes(node: Node, op: Emitter) -> Outcome:
    """Negative axes count from the end of a known rank; of an unknown one, all before them becomes one dimension."""
    return _at_positive_axes(node, op, _squeeze, 0)


@downgrade("Unsqueeze", at=11)
def unsqueeze_positive_axes(node: Node, op: Emitter) -> Outcome:
    """Negative axes count from the end of the new rank; if it is unknown, all before them becomes one dimension."""
    return _at_positive_axes(node, op, _unsqueeze, len(node.attr("axes")))


def _at_positive_axes(
    node: Node, op: Emitter, at_run_time: Callable[[Emitter, Value, Value], Value], new: int
) -> Outcome:
    x, axes = node.input(0), node.attr("axes") or []
    if min(axes, default=0) >= 0:
        return op.same() if axes == sorted(axes) else op.same(axes=sorted(axes))
    if x.rank is None and max(axes) >= 0:
        return at_run_time(op, x, op.const(axes))
    return from_the_front(node, op, axes, lambda x, axes: op.same(x, axes=sorted(axes)), new)
