# SPDX-License-Identifier: Apache-2.0
"""Gather, GatherND, Scatter, ScatterElements, ScatterND.

11: Scatter is called ScatterElements. Axis and indices of Gather may be negative.
12: GatherND has `batch_dims`, the number of leading dimensions that data and indices share.
16: ScatterElements and ScatterND have `reduction`, with add and mul. Indices may then repeat.
18: `reduction` may be max and min.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.axes import from_the_front
from onnx_convert.adapters.lib.dtypes import BOOL, COMPLEX64, COMPLEX128, INT64, STRING, cast
from onnx_convert.adapters.lib.shapes import count_up, known_size, non_negative, part, reshape, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Outcome, Value

_REDUCTIONS: Final = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
_WRITTEN_OUT: Final = 4  # updates that may hit the same element, made without a Loop
_WRITTEN: Final = 1024  # places in a batch, written as a constant


@upgrade("Scatter", at=11)
def rename_to_scatter_elements(node: Node, op: Emitter) -> Value:
    """The operator gets its new name."""
    return op.same(operator="ScatterElements")


# ---- Gather


@downgrade("Gather", at=11)
def gather_from_the_beginning(node: Node, op: Emitter) -> Outcome:
    """Axis and indices count from the beginning; indices that are computed are corrected when they are."""
    axis = node.attr("axis")
    indices = _non_negative_indices(node, op, axis)
    if axis >= 0:
        return op.same(node.input(0), indices)
    return from_the_front(node, op, [axis], lambda x, axes: op.same(x, indices, axis=axes[0]))


def _non_negative_indices(node: Node, op: Emitter, axis: int) -> Value:
    x, indices = node.input(0), node.input(1)
    known, length = indices.constant, known_size(x, axis)
    if known is not None and (known >= 0).all():
        return indices
    dtype = node.dtype(1)
    if length is None:
        size = op.at(10).Squeeze(size_at(op, op.Shape(x), axis), axes=[0])
        return non_negative(op, indices, cast(op, size, dtype))
    if known is not None:
        return op.const(known + length * (known < 0), dtype)
    return non_negative(op, indices, op.const(length, dtype))


# ---- reductions


@downgrade("ScatterElements", "ScatterND", at=18)
def choose_before_scatter(node: Node, op: Emitter) -> Value:
    """Under max and min the updates are compared with what is there, and the outcome scattered."""
    return _combined(node, op) if node.attr("reduction") in ("max", "min") else op.same()


@downgrade("ScatterElements", "ScatterND", at=16)
def combine_before_scatter(node: Node, op: Emitter) -> Value:
    """Under add and mul the updates are combined with what is there, and the outcome scattered."""
    return op.same(drop=("reduction",)) if node.attr("reduction") == "none" else _combined(node, op)


def _reduction(node: Node) -> str:
    """Returns the operator that combines two elements; of booleans the sum is whether any is true."""
    dtype, reduction = node.input(0).dtype, node.attr("reduction")
    if dtype == STRING:
        node.refuse(f"strings have no {reduction}")
    if dtype in (COMPLEX64, COMPLEX128):
        node.refuse(f"no operator has {reduction} for complex numbers", "compute their two parts apart")
    return ("Or" if reduction in ("add", "max") else "And") if dtype == BOOL else _REDUCTIONS[reduction]


def _combined(node: Node, op: Emitter) -> Value:
    """Makes updates that may hit the same element one after the other, in their order: a few, or in a Loop."""
    data, indices, updates = (node.input(index) for index in range(3))
    by_row = node.operator == "ScatterND"
    axis = None if by_row else node.attr("axis")
    count = 1 if _never_repeat(indices, axis) else _count(indices, axis)
    if count == 0:
        return data
    if count is None or count > _WRITTEN_OUT:
        return _in_a_loop(node, op, axis)
    pairs = [(indices, updates)]
    if count > 1:
        if by_row:
            indices, updates = _as_rows(op, indices, updates, node.rank(1))
        halves = (op.node("Split", value, outputs=count, at=13, axis=axis or 0) for value in (indices, updates))
        pairs = list(zip(*halves, strict=True))
    gather, combine = ("GatherND" if by_row else "GatherElements"), getattr(op, _reduction(node))
    for number, (place, update) in enumerate(pairs, 1):
        new = combine(op.node(gather, data, place, axis=axis)[0], update)
        if number < len(pairs):
            data = op.node(node.operator, data, place, new, axis=axis)[0]
    return op.same(data, place, new, drop=("reduction",))


def _in_a_loop(node: Node, op: Emitter, axis: int | None) -> Value:
    """Returns a Loop over the rows, or over the axis, that makes one update a step."""
    data, indices, updates = (node.input(index) for index in range(3))
    carried = data.type or node.dtype(0)  # refused if unknown: a Loop states it
    if axis is None:
        indices, updates = _as_rows(op, indices, updates, node.rank(1))
    gather, combine = ("GatherND" if axis is None else "GatherElements"), _reduction(node)

    def step(inner: Emitter, number: Value, going: Value, before: Value) -> tuple[Value, Value]:
        here = inner.Reshape(number, inner.const([1]))
        place, update = (inner.Gather(value, here, axis=axis or 0) for value in (indices, updates))
        new = getattr(inner, combine)(inner.node(gather, before, place, axis=axis)[0], update)
        return going, inner.node(node.operator, before, place, new, axis=axis)[0]

    count = op.Gather(op.Shape(indices), op.const(axis or 0), axis=0)
    body = op.graph("step", [INT64, BOOL, carried], step)
    return op.node("Loop", count, op.const(True, BOOL), data, body=body)[0]


def _count(indices: Value, axis: int | None) -> int | None:
    """Returns how many updates may hit one element: as many as there are along the axis, or rows."""
    sizes = indices.shape
    if sizes is None:
        return None
    sizes = sizes[:-1] if axis is None else (sizes[axis],)
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def _never_repeat(indices: Value, axis: int | None) -> bool:
    """Returns whether the indices are constant, count from the same end, and name no element twice."""
    known = indices.constant
    if known is None or known.size == 0 or not ((known >= 0).all() or (known < 0).all()):
        return False
    if axis is None:
        rows = known.reshape(-1, known.shape[-1])
        return len(numpy.unique(rows, axis=0)) == len(rows)
    return bool((numpy.diff(numpy.sort(known, axis=axis), axis=axis) != 0).all())


def _as_rows(op: Emitter, indices: Value, updates: Value, rank: int) -> tuple[Value, Value]:
    """Returns indices and updates with the leading dimensions, which count the updates, made one."""
    if rank == 2:
        return indices, updates
    shape = op.Shape(indices)
    count = op.at(10).ReduceProd(part(op, shape, 0, -1), axes=[0], keepdims=1)
    slices = op.Concat(count, part(op, op.Shape(updates), rank - 1), axis=0)
    return reshape(op, indices, op.Concat(count, part(op, shape, -1), axis=0)), reshape(op, updates, slices)


# ---- batches


@downgrade("GatherND", at=12)
def indices_with_batch(node: Node, op: Emitter) -> Value:
    """The place in the batch is written before the indices. If their rank is unknown, the dimensions after the batch
    become one."""
    data, indices, batch = node.input(0), node.input(1), node.attr("batch_dims")
    drop = ("batch_dims",)
    if not batch:
        return op.same(drop=drop)
    if indices.rank is not None:
        return op.same(data, _with_places(op, indices, indices.rank, batch), drop=drop)
    shape = op.Shape(indices)
    middle = op.at(10).ReduceProd(part(op, shape, batch, -1), axes=[0], keepdims=1)
    flat = reshape(op, indices, op.Concat(part(op, shape, 0, batch), middle, part(op, shape, -1), axis=0))
    y = op.same(data, _with_places(op, flat, batch + 2, batch), drop=drop)
    return reshape(op, y, op.Concat(part(op, shape, 0, -1), part(op, op.Shape(y), batch + 1), axis=0))


def _with_places(op: Emitter, indices: Value, rank: int, batch: int) -> Value:
    """Returns indices into the whole data for ones into each element of a batch."""
    sizes = [size for size in (indices.shape or ())[:-1] if isinstance(size, int)]
    if len(sizes) == rank - 1 and prod(sizes) <= _WRITTEN:
        places = [op.const(numpy.moveaxis(numpy.indices(sizes)[:batch], 0, -1))]
    else:
        shape = op.Shape(indices)
        first = op.at(9).Slice(indices, axes=[rank - 1], starts=[0], ends=[1])
        zeros = op.at(7).Mul(first, op.const(0))
        lines = (count_up(op, part(op, shape, axis, axis + 1)) for axis in range(batch))
        turned = (
            op.Reshape(line, op.const([-1 if i == axis else 1 for i in range(rank)])) for axis, line in enumerate(lines)
        )
        places = [op.at(7).Add(zeros, line) for line in turned]
    return op.Concat(*places, indices, axis=rank - 1)
