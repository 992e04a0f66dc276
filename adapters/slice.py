# SPDX-License-Identifier: Apache-2.0
"""Slice.

10: `starts`, `ends`, `axes` are inputs, and `steps` is new; below, attributes.
11: axes may be negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import cast
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import END, non_negative

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value

_FROM, _TO, _AXES, _STEPS = range(1, 5)


@upgrade("Slice", at=10)
def bounds_to_inputs(node: Node, op: Emitter) -> Value:
    """The attributes become constants; steps are 1."""
    names = ("starts", "ends", "axes")
    return op.same(node.input(0), *(op.attribute_as_input(name) for name in names), drop=names)


@downgrade("Slice", at=11)
def slice_positive_axes(node: Node, op: Emitter) -> Outcome:
    """Negative axes count from the end of a known rank; of an unknown one, all before them becomes one dimension."""
    x, axes = node.input(0), node.optional_input(_AXES)
    if axes is None:
        return op.same()
    starts, ends, steps = node.input(_FROM), node.input(_TO), node.optional_input(_STEPS)
    known = axes.constant
    if known is None or (x.rank is None and (known < 0).any() and (known >= 0).any()):
        rank = cast(op, op.Shape(op.Shape(x)), node.dtype(_AXES))
        return op.same(x, starts, ends, non_negative(op, axes, rank), steps)
    return from_the_front(
        node, op, known.tolist(), lambda x, axes: op.same(x, starts, ends, op.const(axes, node.dtype(_AXES)), steps)
    )


@downgrade("Slice", at=10)
def bounds_to_attributes(node: Node, op: Emitter) -> Value:
    """Constant bounds with steps of 1 become attributes; others choose what stays by its indices, axis by axis: along
    each axis there is if what axes are meant is computed as well."""
    x, starts, ends = node.input(0), node.input(_FROM).constant, node.input(_TO).constant
    named, steps = node.optional_input(_AXES), node.optional_input(_STEPS)
    known = named.constant if named is not None else None
    if named is not None and known is None:
        return _sliced_along_each_axis(node, op, named)
    axes = known.tolist() if known is not None else None
    ones = steps is None or (steps.constant is not None and (steps.constant == 1).all())
    if ones and starts is not None and ends is not None:
        return op.same(x, starts=starts.tolist(), ends=ends.tolist(), axes=axes)
    numbers = Numbers(op)
    for index, axis in enumerate(range(_count(node)) if axes is None else axes):
        bounds = node.input(_FROM), node.input(_TO), steps
        start, end, step = (numbers.of(1) if bound is None else numbers.of(bound)[index] for bound in bounds)
        if start.number == 0 and step.number == 1 and end.low >= END:
            continue
        place = axis if axis >= 0 else axis + node.rank(0)
        x = op.Gather(x, _indices(numbers.size(node.input(0), place), start, end, step).value, axis=place)
    return x


def _sliced_along_each_axis(node: Node, op: Emitter, named: Value) -> Value:
    """Returns what a slice leaves along all axes, those which are not among the named ones from first to last."""
    x, numbers = node.input(0), Numbers(op)
    rank, axes = node.rank(0), numbers.of(named)
    axes += axes.is_negative() * rank
    meant = numbers.computed(op.at(7).Equal(axes.value, op.const([[axis] for axis in range(rank)])), 0, 1)

    def along_all(given: Value) -> Number:
        """Returns what is given for each axis, 0 along those that are not named."""
        return (numbers.of(given) * meant).row_sums().squeezed(1)

    others, steps = 1 - meant.row_sums().squeezed(1), node.optional_input(_STEPS)
    starts, ends = along_all(node.input(_FROM)), along_all(node.input(_TO)) + others * END
    strides = along_all(steps) + others if steps is not None else None
    for axis in range(rank):
        stride = strides[axis] if strides is not None else numbers.of(1)
        indices = _indices(numbers.size(node.input(0), axis), starts[axis], ends[axis], stride)
        x = op.Gather(x, indices.value, axis=axis)
    return x


def _count(node: Node) -> int:
    """Returns how many bounds there are, where no axes are named: as many as the input has axes, as the text says,
    though runtimes take fewer."""
    given = [node.optional_input(index) for index in (_FROM, _TO, _STEPS)]
    shapes = [bounds.shape for bounds in given if bounds is not None]
    known = [shape[0] for shape in shapes if shape and isinstance(shape[0], int)]
    if known:
        return known[0]
    rank = node.input(0).rank
    if rank is None:
        node.refuse("neither axes nor the number of starts is known", "name the axes", unknown=True)
    return rank


def _indices(size: Number, start: Number, end: Number, step: Number) -> Number:
    """Returns the indices that a slice of one axis takes, clamped as the text of Slice says."""
    back = step.is_negative()  # 1 where the step goes back
    first = (start + size * start.is_negative()).at_most(size - back).at_least(0)
    last = (end + size * end.is_negative()).at_most(size - back).at_least(-back)
    count = (last - first).divided_up(step).at_least(0)
    return first.range(count if back.number == 0 else count.at_most(size), step)  # back from the end of nothing
