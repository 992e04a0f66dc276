# SPDX-License-Identifier: Apache-2.0
"""GatherElements, GatherND, Scatter, ScatterElements, ScatterND: by places in the flat data.

9: Scatter puts updates into data along one axis.
11: GatherElements takes elements along one axis, GatherND and ScatterND take and put slices that lists of indices name;
Scatter is called ScatterElements. Indices may be negative.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BOOL, DOUBLE, INT64
from onnx_convert.adapters.lib.indices import (
    WRITTEN,
    along_axis,
    fixed,
    flat,
    from_the_start,
    into,
    like,
    places,
    strides,
)
from onnx_convert.adapters.lib.shapes import END, part, product, reshape, size_along

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

# ---- along one axis


@downgrade("GatherElements", at=11)
def gather_by_flat_places(node: Node, op: Emitter) -> Value:
    """The elements are gathered from the flat data."""
    x, indices = node.input(0), node.input(1)
    taken = op.Gather(flat(op, x), along_axis(op, x, indices, node.attr("axis")), axis=0)
    return taken if x.rank is not None or indices.rank is not None else like(op, taken, indices)


@downgrade("ScatterElements", at=11)
def rename_to_scatter(node: Node, op: Emitter) -> Value:
    """The operator gets its old name, and indices count from the beginning."""
    x, axis = node.input(0), node.attr("axis")
    return op.same(x, from_the_start(op, node.input(1), size_along(op, x, axis)), node.input(2), operator="Scatter")


@downgrade("Scatter", at=9)
def gather_updates_by_place(node: Node, op: Emitter) -> Value:
    """Each element is gathered, from the updates if one of them has its place, from the data otherwise."""
    x, updates = node.input(0), flat(op, node.input(2))
    target = flat(op, along_axis(op, x, node.input(1), node.attr("axis")))
    elements, sizes = flat(op, x), fixed(x.shape)
    both = op.at(4).Concat(elements, updates, axis=0)
    known = target.constant
    if known is not None and sizes is not None and (known < prod(sizes)).all() and prod(sizes) <= WRITTEN:
        chosen = numpy.arange(prod(sizes))
        chosen[known] = prod(sizes) + numpy.arange(len(known))
        return like(op, op.Gather(both, op.const(chosen)), x)
    own = places(op, elements, 0)
    target = op.at(4).Concat(op.const([-1]), target, axis=0)  # nobody's place, so that there always is a target
    hits = op.Cast(op.Equal(op.at(10).Unsqueeze(own, axes=[1]), target), to=DOUBLE)
    numbers = op.at(7).Mul(hits, op.Cast(places(op, target, 0), to=DOUBLE))
    last = op.Cast(op.ReduceMax(numbers, axes=[1], keepdims=0), to=INT64)  # 0, or 1 more than the update's number
    moved = op.at(7).Sub(op.at(7).Add(last, op.at(7).Sub(op.Shape(elements), op.const([1]))), own)
    source = op.at(7).Add(own, op.at(7).Mul(moved, op.Cast(op.Cast(last, to=BOOL), to=INT64)))
    return like(op, op.Gather(both, source), x)


# ---- by lists of indices


@downgrade("GatherND", at=11)
def gather_slices_by_flat_places(node: Node, op: Emitter) -> Value:
    """The slices are gathered from data whose leading axes, those that the lists name, are one."""
    data, indices = node.input(0), node.input(1)
    rows, target, rest = _rows(op, data, indices)
    taken = op.Gather(rows, target, axis=0)
    if indices.rank is not None:
        return taken
    before = part(op, op.Shape(indices), 0, -1)
    return reshape(op, taken, op.at(4).Concat(before, rest, axis=0))


@downgrade("ScatterND", at=11)
def scatter_flat_slices(node: Node, op: Emitter) -> Value:
    """The slices, made flat, are put into flat rows of the data."""
    data, indices, updates = (node.input(index) for index in range(3))
    rows, target, rest = _rows(op, data, indices)
    target = flat(op, target)
    if rows.rank == 1:
        return like(op, op.Scatter(rows, target, flat(op, updates), axis=0), data)
    width, count = product(op, rest), op.Shape(target)
    table = op.at(4).Concat(count, width, axis=0)
    sizes = (prod(rest.constant.tolist()),) if rest.constant is not None else (None, None)
    matrix = (
        rows
        if rows.rank == 2
        else into(op, rows, (None, *sizes), lambda: op.at(4).Concat(part(op, op.Shape(rows), 0, 1), width, axis=0))
    )
    target = op.at(8).Expand(op.at(10).Unsqueeze(target, axes=[1]), table)
    return like(op, op.Scatter(matrix, target, reshape(op, updates, table), axis=0), data)


def _rows(op: Emitter, data: Value, indices: Value) -> tuple[Value, Value, Value]:
    """Returns data whose leading axes are one where lists of indices name them, the place of each list in them (flat if
    the rank of the indices is not known), and the sizes of the other axes."""
    depth = indices.shape[-1] if indices.shape else None
    shape, lists = op.Shape(data), indices
    if indices.rank is None:
        sizes = op.Shape(indices)
        count = product(op, part(op, sizes, 0, -1))
        lists = reshape(op, indices, op.at(4).Concat(count, part(op, sizes, -1), axis=0))
    if isinstance(depth, int):
        known = fixed(data.shape[:depth]) if data.shape is not None else None
        named = op.const(known) if known is not None else part(op, shape, 0, depth)
        others = fixed(data.shape[depth:]) if data.shape is not None else None
        rest = op.const(others) if others is not None else part(op, shape, depth)
    else:
        border = part(op, op.Shape(indices), -1)
        named, rest = op.at(10).Slice(shape, op.const([0]), border), op.at(10).Slice(shape, border, op.const([END]))
        others = None
    last = (lists.rank or 2) - 1
    target = from_the_start(op, lists, named)
    if depth == 1:
        return data, op.at(10).Squeeze(target, axes=[last]), rest
    target = op.at(10).ReduceSum(op.at(7).Mul(target, strides(op, named)), axes=[last], keepdims=0)
    merged = (None, *others) if others is not None else None
    rows = into(op, data, merged, lambda: op.at(4).Concat(product(op, named), rest, axis=0))
    return rows, target, rest
