# SPDX-License-Identifier: Apache-2.0
"""ReduceSum and the other reductions, ArgMax, ArgMin.

11: axes may be negative.
12: ArgMax, ArgMin: `select_last_index`.
13 (ReduceSum), 18 (the others): `axes` is an input, below an attribute; `noop_with_empty_axes` says that no axes means
none, where it used to mean all. What an operator does to each element before or after the sum it does all the same.
28: ReduceLogSum, ReduceLogSumExp lose the integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import DOUBLE, INT32, INT64, UINT32, UINT64
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import are_zero, chosen, named, reshape

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value

EXTREMA: Final = ("ReduceMax", "ReduceMin")
AT_18: Final = (
    *EXTREMA, "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSumSquare",
)  # fmt: skip
_ARG: Final = ("ArgMax", "ArgMin")
_NOOP: Final = "noop_with_empty_axes"
_INTEGERS: Final = (INT32, INT64, UINT32, UINT64)
_LOWEST: Final = -(2**31)


@upgrade("ReduceSum", at=13)
@upgrade(*AT_18, at=18)
def axes_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant; without one, or with an empty one, all axes are reduced as before."""
    if not node.refers("axes") and not node.attr("axes"):
        return op.same(drop=("axes",))
    return op.same(node.input(0), op.attribute_as_input("axes"), drop=("axes",))


@downgrade("ReduceSum", at=13)
@downgrade(*AT_18, at=18)
def axes_to_attribute(node: Node, op: Emitter) -> Value:
    """Constant axes become the attribute; others split each dimension, at run time, into what stays and what goes."""
    x, axes = node.input(0), node.optional_input(1)
    noop = node.attr(_NOOP) == 1
    known = axes.constant if axes is not None else None
    if axes is not None and known is None:
        return _reduce_at_run_time(node, op, axes, noop=noop)
    if known is not None and known.size:
        return op.same(x, drop=(_NOOP,), axes=known.ravel().tolist())
    return _reduce_nothing(node, op) if noop else op.same(x, drop=(_NOOP,))


def _reduce_nothing(node: Node, op: Emitter) -> Value:
    x = node.input(0)
    if node.operator in ("ReduceL1", "ReduceL2"):
        return op.Abs(x)
    if node.operator == "ReduceLogSum":
        return op.Log(x)
    return op.Mul(x, x) if node.operator == "ReduceSumSquare" else op.Identity(x)


def _reduce_at_run_time(node: Node, op: Emitter, axes: Value, *, noop: bool) -> Value:
    """Makes two of each dimension of size d, [d, 1] where it stays, [1, d] where it goes; every second is reduced."""
    x, rank = node.input(0), node.rank(0)
    if rank == 0:
        return op.same(x, drop=(_NOOP,))
    if node.operator not in EXTREMA:
        op.equivalent("the sum may be taken in another order")
    numbers = Numbers(op)
    sizes = numbers.sizes(x)
    goes = numbers.of(named(op, axes, sizes.value))
    if not noop and not (axes.shape and isinstance(axes.shape[0], int) and axes.shape[0]):
        goes += numbers.of(op.Cast(are_zero(op, op.Shape(axes)), to=INT64))  # no axes: all go
    excess = (sizes - 1) * goes
    stay = sizes - excess
    pairs = [op.at(10).Unsqueeze(half.value, axes=[1]) for half in (stay, excess + 1)]
    split = reshape(op, x, op.Reshape(op.at(4).Concat(*pairs, axis=1), op.const([2 * rank])))
    reduced: Value = op.same(split, drop=(_NOOP,), axes=list(range(1, 2 * rank, 2)), keepdims=0)
    if node.attr("keepdims"):
        return reduced
    return reshape(op, reduced, chosen(op, stay.value, are_zero(op, goes.value)))


@downgrade("ReduceSum", *AT_18, at=11)
def positive_axes(node: Node, op: Emitter) -> Outcome:
    """Negative axes count from the end of a known rank; of an unknown one, all before them becomes one dimension."""
    return from_the_front(node, op, node.attr("axes") or [], lambda x, axes: op.same(x, axes=axes))


@downgrade(*_ARG, at=11)
def positive_axis(node: Node, op: Emitter) -> Outcome:
    """A negative axis counts from the end of a known rank; of an unknown one, all before it becomes one dimension."""
    return from_the_front(node, op, [node.attr("axis")], lambda x, axes: op.same(x, axis=axes[0]))


@downgrade(*_ARG, at=12)
def last_index_from_the_end(node: Node, op: Emitter) -> Value:
    """The last of equal elements is the first one of the reversed axis, counted from its end."""
    if not node.attr("select_last_index"):
        return op.same(drop=("select_last_index",))
    x, axis = node.input(0), node.attr("axis")
    turned = op.Slice(x, op.const([-1]), op.const([_LOWEST]), op.const([axis]), op.const([-1]))
    last = op.at(7).Sub(op.Gather(op.Shape(x), op.const(axis)), op.const(1))
    return op.at(7).Sub(last, op.same(turned, drop=("select_last_index",)))


@upgrade("ReduceLogSum", "ReduceLogSumExp", at=28)
def integers_through_double(node: Node, op: Emitter) -> Value:
    """The logarithm of an integer is taken as that of a double, and truncated."""
    x, dtype = node.input(0), node.input(0).dtype
    if dtype not in _INTEGERS:
        return op.same()
    op.equivalent("the logarithm of integers is taken in double and truncated")
    if node.operator == "ReduceLogSum":
        how = {name: node.attr(name) for name in ("keepdims", _NOOP) if node.has(name)}
        wide = op.Log(op.Cast(op.ReduceSum(*node.inputs, **how), to=DOUBLE))
    else:
        wide = op.same(op.Cast(x, to=DOUBLE), *node.inputs[1:])
    return op.Cast(wide, to=dtype)
