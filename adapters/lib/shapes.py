# SPDX-License-Identifier: Apache-2.0
"""Shape arithmetic at run time, for adapters that meet a value of unknown rank or shape.

Everything is written in forms that exist from opset 9 or below (Slice, ReduceProd, Unsqueeze with attributes), and
carried to the target from there; only `reshape` is written for 14, which has `allowzero`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.lib.dtypes import FLOAT, INT64

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Value

END: Final = 2**31 - 1


def part(op: Emitter, vector: Value, start: int, end: int = END) -> Value:
    """Writes a Slice of a 1-D value, from `start` up to `end`; negative numbers count from its end."""
    return op.at(9).Slice(vector, axes=[0], starts=[start], ends=[end])


def product(op: Emitter, vector: Value) -> Value:
    """Writes the product of an int64 vector, as a vector of one element; 1 if it has none."""
    return op.at(10).ReduceProd(vector, axes=[0], keepdims=1)


def three_dimensions(op: Emitter, shape: Value, axis: int) -> Value:
    """Writes the shape [product before the axis, size at it, product after it] of a given shape; axis is not -1."""
    before = product(op, part(op, shape, 0, axis)) if axis else op.const([1])
    return op.Concat(before, part(op, shape, axis, axis + 1), product(op, part(op, shape, axis + 1)), axis=0)


# ---- shapes that may hold a 0


def never_empty(x: Value) -> bool:
    """Returns whether all sizes of a value are known and none is 0."""
    return x.shape is not None and all(isinstance(size, int) and size > 0 for size in x.shape)


def shape_of(op: Emitter, x: Value) -> Value:
    """Writes the shape of a value, to be given to another one: a constant if at most one size is unknown and none 0."""
    sizes = [size if isinstance(size, int) else -1 for size in x.shape or ()]
    if sizes and sizes.count(-1) <= 1 and 0 not in sizes:
        return op.const(sizes)
    return op.Shape(x)


def reshape(op: Emitter, x: Value, shape: Value) -> Value:
    """Writes a Reshape whose zeros are sizes: a plain one would copy the input's size for a 0."""
    sizes = shape.constant
    if (sizes is not None and sizes.all()) or never_empty(x):
        return op.at(13).Reshape(x, shape)
    return op.at(14).Reshape(x, shape, allowzero=1)


def ranked(op: Emitter, x: Value, rank: int) -> Value:
    """Returns a value whose rank is known to inference: a Reshape that copies so many sizes, where it is not yet."""
    return x if x.rank is not None else op.at(5).Reshape(x, op.const([0] * rank))


def ones_like(op: Emitter, vector: Value) -> Value:
    """Writes as many ones as an int64 vector has elements."""
    length = vector.shape[0] if vector.shape else None
    if isinstance(length, int):
        return op.const([1] * length)
    return op.at(7).Add(op.at(7).Mul(vector, op.const([0])), op.const([1]))


# ---- axes that count from the end


def collapse(op: Emitter, x: Value, tail: int) -> tuple[Value, Value]:
    """Makes one axis of all before the last `tail` axes of a value.

    Returns it, of rank tail + 1, and the sizes of the axes that are gone, for `restore`: of [2, 3, 4, 5] and a tail of
    1 the value as [24, 5], and [2, 3, 4].
    """
    shape = op.Shape(x)
    before = part(op, shape, 0, -tail) if tail else shape
    target = product(op, before)
    if tail:
        target = op.at(4).Concat(target, part(op, shape, -tail), axis=0)
    return reshape(op, x, target), before


def restore(op: Emitter, y: Value, before: Value) -> Value:
    """Gives a value whose first axis stands for several the sizes of these again, as `collapse` returned them."""
    return reshape(op, y, op.at(4).Concat(before, part(op, op.Shape(y), 1), axis=0))


def non_negative(op: Emitter, axes: Value, length: Value) -> Value:
    """Adds a length to the integers that are below 0, and keeps the others; both have one dtype.

    Exact at every opset: the sign of an integer outlives the Cast to float, in which alone Less compares below 9.
    """
    dtype = axes.dtype or INT64
    sign = op.at(7).Less(op.Cast(axes, to=FLOAT), op.const(0, FLOAT))
    return op.at(7).Add(axes, op.at(7).Mul(op.Cast(sign, to=dtype), length))


def positions(op: Emitter, vector: Value) -> Value:
    """Writes the indices [[0, 1, 2, ...]] of a vector, a matrix of one row."""
    length = vector.shape[0] if vector.shape else None
    if isinstance(length, int) and length:
        return op.const([list(range(length))])
    return op.at(9).NonZero(ones_like(op, vector))


def named(op: Emitter, axes: Value, dims: Value) -> Value:
    """Writes 1 for each element of `dims` whose index `axes` names, from the front or the end, and 0 for the others."""
    row = positions(op, dims)
    length = row.shape[1] if row.shape else None
    if isinstance(length, int):
        either = op.const([[[i], [i - length]] for i in range(length)] or [[[0], [0]]][:0])
    else:
        pair = op.at(4).Concat(row, op.at(7).Sub(row, op.Shape(dims)), axis=0)
        either = op.at(10).Unsqueeze(op.Transpose(pair, perm=[1, 0]), axes=[2])
    hits = op.Cast(op.at(7).Equal(either, axes), to=INT64)
    return op.at(10).ReduceSum(hits, axes=[1, 2], keepdims=0)


def are_zero(op: Emitter, vector: Value) -> Value:
    """Writes which elements of an int64 vector are 0, as booleans."""
    return op.at(7).Equal(vector, op.const([0]))


def chosen(op: Emitter, vector: Value, condition: Value) -> Value:
    """Writes the elements of a vector where a condition holds; not by Compress: inference does not know it below 11."""
    return op.at(10).Squeeze(op.at(10).Gather(vector, op.at(9).NonZero(condition)), axes=[0])


# ---- sizes and indices


def known_size(x: Value, axis: int) -> int | None:
    """Returns the size of a value along an axis, None if it is not known."""
    size = x.shape[axis] if x.shape else None
    return size if isinstance(size, int) else None


def size_along(op: Emitter, x: Value, axis: int) -> Value:
    """Writes the size of a value along an axis, as a vector of one element: a constant where it is known."""
    size = known_size(x, axis)
    return op.const([size]) if size is not None else size_at(op, op.Shape(x), axis)


def size_at(op: Emitter, shape: Value, axis: int) -> Value:
    """Writes one element of a shape, as a vector; a negative axis counts from the end."""
    return part(op, shape, axis, axis + 1 or END)


def count_in_row(op: Emitter, length: Value) -> Value:
    """Writes the matrix [[0, 1, 2, ...]] of so many columns; `length` is a vector of one element."""
    return op.at(9).NonZero(op.at(8).Expand(op.const([1]), length))


def count_up(op: Emitter, length: Value) -> Value:
    """Writes the vector 0, 1, 2, ... of so many elements; `length` is a vector of one element."""
    return op.at(10).Squeeze(count_in_row(op, length), axes=[0])


def at_least_zero(op: Emitter, integers: Value) -> Value:
    """Writes int64 values with 0 for those below it. Exact at every opset and for each int64, as `non_negative` is."""
    positive = op.at(7).Greater(op.Cast(integers, to=FLOAT), op.const(0, FLOAT))
    return op.at(7).Mul(integers, op.Cast(positive, to=INT64))
