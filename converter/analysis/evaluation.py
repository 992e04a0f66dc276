# SPDX-License-Identifier: Apache-2.0
"""Computes what the few operators make that constants are made of, as their texts say, at every version of theirs.

onnx.reference does as numpy does, which is something else for a Slice that goes back from before the first element,
for the division of negative integers, and for numbers that a dtype cannot hold. What a text leaves open is not
computed, nor what runtimes may round differently: then the value is simply not known.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy
from onnx import helper, numpy_helper

from onnx_convert.model.attributes import given
from onnx_convert.spec.types import dtype_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx import NodeProto

    Array = numpy.ndarray[Any, Any]

_NUMBERS: Final = "biuf"  # kinds of numpy: booleans, integers, floats


class _Sum(NamedTuple):
    """A node to compute: its attributes, the opset that it stands at, its inputs, how many elements may come out."""

    given: dict[str, Any]
    opset: int
    inputs: Sequence[Array | None]
    most: int

    def input(self, index: int) -> Array:
        """Returns an input that has to be there."""
        found = self.inputs[index]
        if found is None:
            raise ValueError("an input is missing")
        return found

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def integers(self, name: str, index: int, since: int) -> list[int] | None:
        """Returns integers that are an attribute up to an opset and an input from it on; None if they are left out."""
        if self.opset < since:
            found = self.given.get(name)
            return [int(one) for one in found] if found is not None else None
        return [int(one) for one in self.input(index).ravel()] if self.has(index) else None

    def axis(self, axis: int, rank: int) -> int:
        """Returns an axis counted from the beginning."""
        if not -rank <= axis < rank or (axis < 0 and self.opset < 11):
            raise ValueError("no such axis")
        return axis % rank


def compute(node: NodeProto, opset: int, inputs: Sequence[Array | None], most: int) -> Array | None:
    """Returns the output of a node on constants, None if it is not known or has more than `most` elements.

    `opset` is the one that the node is written for; an input that is left out is None.
    """
    rule = _RULES.get(node.op_type)
    if rule is None or any(array is not None and array.dtype.kind not in _NUMBERS for array in inputs):
        return None
    try:
        with numpy.errstate(all="ignore"):
            found = rule(_Sum(given(node), opset, inputs, most))
    except (ValueError, IndexError, TypeError, OverflowError, KeyError):  # the node is not valid, as others will say
        return None
    return found if found is not None and found.size <= most else None


def taken(count: int, start: int, end: int, step: int) -> range:
    """Returns the indices that Slice takes of an axis of `count` elements. Unlike in Python, no start lies before the
    first element: going back from before it, the first element is taken.

    >>> list(taken(1, -3, -100, -1))
    [0]
    """
    low, high = (-1, count - 1) if step < 0 else (0, count)
    first = max(min(start + count * (start < 0), high), 0)
    last = max(min(end + count * (end < 0), high), low)
    return range(first, last, step) if count else range(0)


def _held(exact: Array, dtype: numpy.dtype[Any]) -> Array | None:
    """Returns integers in a dtype, None if it cannot hold one of them: runtimes wrap around, no text says so."""
    limits = numpy.iinfo(dtype)
    if any(not limits.min <= one <= limits.max for one in exact.ravel().tolist()):
        return None
    return numpy.array(exact.tolist(), dtype=dtype).reshape(exact.shape)


def _pairwise(
    of_floats: Callable[[Array, Array], Array], of_integers: Callable[[int, int], int]
) -> Callable[[_Sum], Array | None]:
    def rule(s: _Sum) -> Array | None:
        a, b = s.input(0), s.input(1)
        if a.dtype != b.dtype or a.dtype.kind == "b" or (s.opset < 7 and a.shape != b.shape):
            return None
        if math.prod(numpy.broadcast_shapes(a.shape, b.shape)) > s.most:
            return None
        if a.dtype.kind == "f":
            return numpy.asarray(of_floats(a, b))
        x, y = numpy.broadcast_arrays(a, b)
        exact = [of_integers(int(m), int(n)) for m, n in zip(x.ravel(), y.ravel(), strict=True)]
        return _held(numpy.array(exact, dtype=object).reshape(x.shape), a.dtype)

    return rule


def _towards_zero(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("what an integer divided by zero is, no text says")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _negative(s: _Sum) -> Array | None:
    x = s.input(0)
    if x.dtype.kind == "f":
        return numpy.asarray(-x)
    exact = numpy.array([-int(one) for one in x.ravel()], dtype=object).reshape(x.shape)
    return _held(exact, x.dtype) if x.dtype.kind == "i" else None


def _cast(s: _Sum) -> Array | None:
    """Casts to numbers; a float that no integer is, or that is too large, becomes what each runtime likes."""
    x, to = s.input(0), s.given["to"]
    number = to if isinstance(to, int) else dtype_number(to)
    if number not in _PLAIN:
        return None
    dtype = numpy.dtype(helper.tensor_dtype_to_np_dtype(number))
    if dtype.kind in "iu" and x.dtype.kind == "f":
        if not numpy.isfinite(x).all():
            return None
        exact = numpy.array([int(one) for one in x.ravel()], dtype=object).reshape(x.shape)
        return _held(exact, dtype)
    if dtype.kind in "iu" and x.dtype.kind in "iu":
        return _held(x.astype(object), dtype)
    return x.astype(dtype)


_PLAIN: Final = frozenset(
    dtype_number(name) for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float double".split()
)


def _concat(s: _Sum) -> Array:
    arrays = [s.input(index) for index in range(len(s.inputs))]
    axis = s.given.get("axis", 1) if s.opset < 4 else s.given["axis"]
    if len({array.dtype for array in arrays}) > 1:
        raise ValueError("of several dtypes")
    return numpy.concatenate(arrays, axis=s.axis(axis, arrays[0].ndim))


def _constant_of_shape(s: _Sum) -> Array | None:
    dims = [int(one) for one in s.input(0).ravel()]
    if math.prod(dims) > s.most or min(dims, default=0) < 0:
        return None
    value = s.given.get("value")
    if value is None:
        return numpy.zeros(dims, numpy.float32)
    return numpy.full(dims, numpy_helper.to_array(value).ravel()[0])


def _equal(s: _Sum) -> Array | None:
    a, b = s.input(0), s.input(1)
    if a.dtype != b.dtype or (s.opset < 7 and a.shape != b.shape):
        return None
    return numpy.asarray(numpy.equal(a, b))


def _expand(s: _Sum) -> Array | None:
    x, shape = s.input(0), [int(one) for one in s.input(1).ravel()]
    if min(shape, default=0) < 0:
        return None
    wanted = numpy.broadcast_shapes(x.shape, tuple(shape))
    return numpy.broadcast_to(x, wanted).copy() if math.prod(wanted) <= s.most else None


def _gather(s: _Sum) -> Array | None:
    data, indices = s.input(0), s.input(1)
    axis = s.axis(s.given.get("axis", 0), data.ndim)
    size = data.shape[axis]
    low = -size if s.opset >= 11 else 0
    if ((indices < low) | (indices >= size)).any():
        return None
    if math.prod(data.shape[:axis]) * indices.size * math.prod(data.shape[axis + 1 :]) > s.most:
        return None
    return numpy.take(data, indices.astype(numpy.int64), axis=axis)


def _range(s: _Sum) -> Array | None:
    """Computes the range of integers; how many floats there are depends on who rounds."""
    start, limit, delta = (s.input(index) for index in range(3))
    if start.dtype.kind not in "iu" or int(delta.item()) == 0:
        return None
    numbers = range(int(start.item()), int(limit.item()), int(delta.item()))
    return numpy.array(numbers, dtype=start.dtype) if len(numbers) <= s.most else None


def _product(s: _Sum) -> Array | None:
    """Computes the product of integers; floats may be rounded in any order."""
    x = s.input(0)
    named = s.integers("axes", 1, 18)
    axes = [s.axis(axis, x.ndim) for axis in named or []]
    if not axes and s.given.get("noop_with_empty_axes", 0):
        return x
    if x.dtype.kind not in "iu":
        return None
    over = tuple(axes) if axes else None
    exact = numpy.prod(x.astype(object), axis=over, keepdims=bool(s.given.get("keepdims", 1)), initial=1)
    return _held(numpy.array(exact, dtype=object), x.dtype)


def _reshape(s: _Sum) -> Array | None:
    x, shape = s.input(0), s.integers("shape", 1, 5)
    if shape is None:
        return None
    copies = not s.given.get("allowzero", 0)
    dims = [x.shape[axis] if size == 0 and copies else size for axis, size in enumerate(shape)]
    if -1 in dims:
        others = math.prod(size for size in dims if size != -1)
        if others == 0 or x.size % others:
            return None
        dims[dims.index(-1)] = x.size // others
    return x.reshape(dims) if min(dims, default=0) >= 0 else None


def _slice(s: _Sum) -> Array | None:
    x = s.input(0)
    starts, ends = s.integers("starts", 1, 10), s.integers("ends", 2, 10)
    if starts is None or ends is None or len(starts) != len(ends):
        return None
    axes = s.integers("axes", 3, 10)
    steps = s.integers("steps", 4, 10) or [1] * len(starts)
    axes = [*range(len(starts))] if axes is None else [s.axis(axis, x.ndim) for axis in axes]
    if len(set(axes)) != len(axes) or len(axes) != len(starts) or 0 in steps:
        return None
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        x = numpy.take(x, [*taken(x.shape[axis], start, end, step)], axis=axis)
    return x


def _squeeze(s: _Sum) -> Array | None:
    x, named = s.input(0), s.integers("axes", 1, 13)
    if named is None:
        return x.reshape([size for size in x.shape if size != 1])
    axes = {s.axis(axis, x.ndim) for axis in named}
    if any(x.shape[axis] != 1 for axis in axes):
        return None
    return x.reshape([size for axis, size in enumerate(x.shape) if axis not in axes])


def _unsqueeze(s: _Sum) -> Array | None:
    x, named = s.input(0), s.integers("axes", 1, 13)
    if named is None:
        return None
    rank = x.ndim + len(named)
    axes = {s.axis(axis, rank) for axis in named}
    rest = iter(x.shape)
    return x.reshape([1 if axis in axes else next(rest) for axis in range(rank)]) if len(axes) == len(named) else None


def _transpose(s: _Sum) -> Array | None:
    x, perm = s.input(0), s.given.get("perm")
    if perm is not None and sorted(perm) != [*range(x.ndim)]:
        return None
    return numpy.transpose(x, perm).copy()


def _where(s: _Sum) -> Array | None:
    condition, a, b = (s.input(index) for index in range(3))
    if condition.dtype.kind != "b" or a.dtype != b.dtype:
        return None
    if math.prod(numpy.broadcast_shapes(condition.shape, a.shape, b.shape)) > s.most:
        return None
    return numpy.where(condition, a, b)


_RULES: Final[dict[str, Callable[[_Sum], Array | None]]] = {
    "Add": _pairwise(numpy.add, lambda a, b: a + b),
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _pairwise(numpy.divide, _towards_zero),
    "Equal": _equal,
    "Expand": _expand,
    "Gather": _gather,
    "Identity": lambda s: s.input(0),
    "Mul": _pairwise(numpy.multiply, lambda a, b: a * b),
    "Neg": _negative,
    "Range": _range,
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _pairwise(numpy.subtract, lambda a, b: a - b),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}

OPERATORS: Final = frozenset(_RULES)
