# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression, which is there from 10 on: a Loop takes the best box that is left, of every class at once, and
leaves out what overlaps it."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.bodies import tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, INT64
from onnx_convert.adapters.lib.indices import flat, places, scalar, vector
from onnx_convert.adapters.lib.shapes import known_size, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_LIMIT: Final = 2
_OVERLAP: Final = 3
_SCORE: Final = 4


@downgrade("NonMaxSuppression", at=10)
def take_the_best_that_is_left(node: Node, op: Emitter) -> Value:
    """Each step adds one box of each class, 0 for none, to those taken; where they are not 0 is batch and class."""
    scores, limit = node.input(1), node.optional_input(_LIMIT)
    if limit is None:  # which means 0
        return op.const(numpy.empty((0, 3)))
    op.large("a Loop that compares a box of each class with all others in every step")
    op.equivalent(
        "two boxes whose overlap is the threshold up to rounding may be judged otherwise, a score that is the "
        "threshold is left out as by runtimes, and one that is no number comes last"
    )
    boxes = _Boxes(node, op)
    least = node.optional_input(_SCORE)
    live = op.Greater(scores, least) if least is not None else op.Not(op.Less(scores, scores))  # all of them
    if least is None:  # what is no number comes last, and disturbs the order of none
        number = op.Or(op.Less(scores, op.const(1, FLOAT)), op.Greater(scores, op.const(0, FLOAT)))
        scores = op.Where(number, scores, op.const(-inf, FLOAT))
    nothing = op.Cast(op.Slice(scores, axes=[2], starts=[0], ends=[0]), to=INT64)
    given = node.optional_input(_OVERLAP)
    overlap = op.const(0, FLOAT) if given is None else given

    def step(inner: Emitter, _: Value, __: Value, live: Value, taken: Value) -> tuple[Value, ...]:
        there = inner.ReduceMax(inner.Cast(live, to=FLOAT), axes=[2], keepdims=1)
        left = inner.Where(live, scores, inner.const(-inf, FLOAT))
        worse = inner.Less(left, inner.ReduceMax(left, axes=[2], keepdims=1))
        place = inner.ArgMax(inner.Cast(inner.And(live, inner.Not(worse)), to=FLOAT), axis=2, keepdims=1)
        close = inner.Or(boxes.overlap(inner, place, overlap), inner.Equal(boxes.numbers, place))
        live = inner.And(live, inner.Not(close))
        number = inner.Mul(inner.Add(place, inner.const(1)), inner.Cast(there, to=INT64))
        going = inner.Cast(inner.ReduceMax(inner.Cast(live, to=FLOAT), keepdims=0), to=BOOL)
        return going, live, inner.Concat(taken, number, axis=2)

    batch, classes, count = known_size(scores, 0), known_size(scores, 1), known_size(scores, 2)
    carried = (INT64, BOOL, tensor_type(BOOL, batch, classes, count), tensor_type(INT64, batch, classes, None))
    going = op.Cast(op.Size(scores), to=BOOL)  # there is no best one of none
    body = op.graph("step", carried, step)
    taken = op.node("Loop", scalar(op, vector(op, limit)), going, live, nothing, outputs=2, body=body)[1]
    numbers = op.Reshape(taken, op.const([-1]))
    index = op.Sub(op.Gather(numbers, op.NonZero(numbers)), op.const(1))
    owner = op.Slice(op.NonZero(taken), axes=[0], starts=[0], ends=[2])
    return op.Transpose(op.Concat(owner, index, axis=0), perm=[1, 0])


class _Boxes:
    """The edges of all boxes, each [batch, 1, boxes], and their areas."""

    def __init__(self, node: Node, op: Emitter) -> None:
        boxes = node.input(0)
        columns = [op.Slice(boxes, axes=[2], starts=[i], ends=[i + 1]) for i in range(4)]
        first, second, third, fourth = (op.Transpose(column, perm=[0, 2, 1]) for column in columns)
        if node.attr("center_point_box"):
            half = op.const(2, FLOAT)
            wide, high = op.Div(third, half), op.Div(fourth, half)
            self.low = [op.Sub(first, wide), op.Sub(second, high)]
            self.high = [op.Add(first, wide), op.Add(second, high)]
        else:
            self.low = [op.Min(first, third), op.Min(second, fourth)]
            self.high = [op.Max(first, third), op.Max(second, fourth)]
        sides = [op.Sub(high, low) for low, high in zip(self.low, self.high, strict=True)]
        self.area = op.Mul(*sides)
        self.flat = [[flat(op, value) for value in values] for values in (self.low, self.high, [self.area])]
        self.numbers = places(op, boxes, 1)
        self.start: Value | None = None  # of each batch in a flat value
        if known_size(boxes, 0) != 1:
            start = op.Mul(places(op, boxes, 0), size_at(op, op.Shape(boxes), 1))
            self.start = op.Unsqueeze(start, axes=[1, 2])

    def overlap(self, op: Emitter, place: Value, threshold: Value) -> Value:
        """Returns which boxes share more than that part of their common area with the boxes at these places, one a
        class."""
        if self.start is not None:
            place = op.Add(place, self.start)
        low, high, (area,) = ([op.Gather(value, place) for value in values] for values in self.flat)
        sides = []
        for axis in range(2):
            side = op.Sub(op.Min(self.high[axis], high[axis]), op.Max(self.low[axis], low[axis]))
            sides.append(op.Max(side, op.const(0, FLOAT)))
        shared = op.Mul(*sides)
        return op.Greater(op.Div(shared, op.Sub(op.Add(self.area, area), shared)), threshold)
