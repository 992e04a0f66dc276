# SPDX-License-Identifier: Apache-2.0
"""The places of elements: along an axis, and in a flat value.

Comparisons of integers are those of their difference with 0 in float, which is exact and there at every opset.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy

from onnx_convert.adapters.lib.bodies import tensor_type
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT, INT64, cast
from onnx_convert.adapters.lib.shapes import (
    END,
    are_zero,
    count_up,
    known_size,
    non_negative,
    part,
    product,
    reshape,
    size_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx_convert.adapter import Dim, Emitter, Value

WRITTEN: Final = 1024  # elements that are written as a constant


# ---- what is known


def fixed(sizes: Sequence[Dim] | None) -> tuple[int, ...] | None:
    """Returns the sizes if all of them are known, None otherwise."""
    if sizes is None or not all(isinstance(size, int) for size in sizes):
        return None
    return tuple(size for size in sizes if isinstance(size, int))


def never_negative(indices: Value) -> bool:
    """Returns whether indices are constants that all count from the front."""
    return indices.constant is not None and bool((indices.constant >= 0).all())


# ---- scalars and vectors


def vector(op: Emitter, one: Value) -> Value:
    """Writes a scalar, or a vector of one element, as such a vector."""
    return one if one.rank == 1 else op.at(5).Reshape(one, op.const([1]))


def scalar(op: Emitter, one: Value) -> Value:
    """Writes a vector of one element as a scalar."""
    return op.at(10).Squeeze(one, axes=[0])


def flat(op: Emitter, x: Value) -> Value:
    """Writes all elements of a value, as a vector."""
    return x if x.rank == 1 else op.at(5).Reshape(x, op.const([-1]))


def into(op: Emitter, x: Value, sizes: Sequence[Dim] | None, measured: Callable[[], Value]) -> Value:
    """Writes a value in another shape: a constant one if at most one size is not known and none is 0, else the one that
    `measured` writes."""
    known = [size if isinstance(size, int) else -1 for size in sizes] if sizes is not None else [0]
    if 0 in known or known.count(-1) > 1:
        return reshape(op, x, measured())
    return op.at(5).Reshape(x, op.const(known))


def like(op: Emitter, y: Value, x: Value) -> Value:
    """Writes the elements of one value in the shape of another."""
    return y if x.rank == y.rank == 1 else into(op, y, x.shape, lambda: op.Shape(x))


def places(op: Emitter, x: Value, axis: int) -> Value:
    """Writes the vector 0, 1, 2, ... as long as an axis of a value, which may count from the end."""
    size = known_size(x, axis)
    return op.const(range(size)) if size is not None else count_up(op, size_at(op, op.Shape(x), axis))


def column(op: Emitter, numbers: Value) -> Value:
    """Writes a vector as a matrix of one column.

    Not by Unsqueeze: inference would take it for a shape, and fail where it is added to another one.
    """
    known = numbers.constant
    return op.at(5).Reshape(numbers, op.const([-1, 1])) if known is None else op.const(known.reshape(-1, 1))


def is_negative(op: Emitter, integers: Value) -> Value:
    """Writes which integers are below 0, as booleans."""
    return op.at(7).Less(op.Cast(integers, to=FLOAT), op.const(0, FLOAT))


def from_the_start(op: Emitter, indices: Value, size: Value) -> Value:
    """Writes indices as int64, none of which counts from the end any more; `size` is a vector of one element, or has
    one for each index along their last axis."""
    if never_negative(indices):
        return cast(op, indices, INT64)
    if indices.constant is not None and size.constant is not None:
        known = indices.constant.astype(numpy.int64)
        return op.const((known + size.constant * (known < 0)).reshape(known.shape))
    return non_negative(op, cast(op, indices, INT64), scalar(op, size) if indices.rank == 0 else size)


def loop(op: Emitter, count: Value, start: Value, step: Callable[..., tuple[Value, Value]]) -> Value:
    """Writes a Loop of `count` steps, and returns the vector of what they make.

    `step(op, number, state)` takes the number of the step and a vector of one element, `start` at first; it returns
    what the next step takes, and an element of the vector.
    """

    def build(inner: Emitter, number: Value, going: Value, state: Value) -> tuple[Value, ...]:
        return going, *step(inner, number, state)

    body = op.graph("step", [INT64, BOOL, tensor_type(start.dtype or INT64, 1)], build)
    made = op.node("Loop", scalar(op, count), op.const(True, BOOL), start, outputs=2, body=body)[1]
    return op.at(10).Squeeze(made, axes=[1])


# ---- flat places


def at_least_one(op: Emitter, sizes: Value) -> Value:
    """Writes sizes that may be divided by: 1 for a 0, where there is nothing to be found anyway."""
    return op.at(7).Add(sizes, op.Cast(are_zero(op, sizes), to=INT64))


def strides(op: Emitter, sizes: Value) -> Value:
    """Writes how far apart the neighbours along each axis are in a flat value with these sizes, as a vector."""
    known = sizes.constant
    if known is not None:
        return op.const([prod(max(size, 1) for size in known[axis + 1 :].tolist()) for axis in range(len(known))])
    rank = sizes.shape[0] if sizes.shape else None
    sizes = at_least_one(op, sizes)
    if isinstance(rank, int) and rank:
        return op.at(4).Concat(
            *(product(op, part(op, sizes, axis + 1)) for axis in range(rank - 1)), op.const([1]), axis=0
        )

    def step(inner: Emitter, number: Value, block: Value) -> tuple[Value, Value]:
        smaller = inner.Div(block, inner.Gather(sizes, number))
        return smaller, inner.Identity(smaller)

    return loop(op, op.Shape(sizes), product(op, sizes), step)


def along_axis(op: Emitter, x: Value, indices: Value, axis: int) -> Value:
    """Writes the flat places in `x` of the elements that indices name along one axis, in the shape of the indices (flat
    if no rank is known)."""
    rank = x.rank if x.rank is not None else indices.rank
    shape = op.const(x.shape) if fixed(x.shape) is not None else op.Shape(x)
    if rank is None:
        return _along_axis_of_any_rank(op, shape, indices, axis)
    axis %= rank
    named = from_the_start(op, indices, _element(op, shape, axis))
    if rank == 1:
        return named
    steps = strides(op, shape)
    total = named if axis == rank - 1 else op.at(7).Mul(named, _element(op, steps, axis))
    others = [other for other in range(rank) if other != axis and not (indices.shape and indices.shape[other] == 1)]
    sizes, known = fixed(indices.shape), steps.constant
    if sizes is not None and known is not None and prod(sizes) <= WRITTEN:
        grid = numpy.indices(sizes)
        return op.at(7).Add(total, op.const(sum(grid[other] * known[other] for other in others))) if others else total
    for other in others:
        line = places(op, indices, other)
        line = line if other == rank - 1 else op.at(7).Mul(line, _element(op, steps, other))
        after = list(range(1, rank - other))
        total = op.at(7).Add(total, op.at(10).Unsqueeze(line, axes=after) if after else line)
    return total


def _along_axis_of_any_rank(op: Emitter, shape: Value, indices: Value, axis: int) -> Value:
    named = from_the_start(op, flat(op, indices), size_at(op, shape, axis))
    steps, grid = strides(op, shape), op.at(9).NonZero(op.at(8).Expand(op.const(1), op.Shape(indices)))
    own = op.at(9).Slice(grid, axes=[0], starts=[axis], ends=[axis + 1 or END])
    moved = op.at(7).Mul(op.at(7).Sub(named, own), size_at(op, steps, axis))
    grid = op.at(7).Mul(grid, op.at(10).Unsqueeze(steps, axes=[1]))
    return op.at(7).Add(flat(op, moved), op.at(10).ReduceSum(grid, axes=[0], keepdims=0))


def _element(op: Emitter, numbers: Value, place: int) -> Value:
    """Returns one of a vector of numbers, as a vector."""
    known = numbers.constant
    return op.const([known[place]]) if known is not None else part(op, numbers, place, place + 1)
