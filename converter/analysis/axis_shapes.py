# SPDX-License-Identifier: Apache-2.0
"""Computes the shapes of outputs of operators that move, add, stretch, cut or drop axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onnx_convert.analysis.evaluation import taken
from onnx_convert.analysis.operator_call import END, Call, Dims, size_of, stretched, unknown
from onnx_convert.analysis.propagation import Size, Vector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def slice_(call: Call) -> list[Dims]:
    """Returns the shapes of Slice: the axes that are not named stay; of the others the size follows where all is
    known."""
    x = call.dims(0)
    starts, ends = call.integers("starts", 1, 10), call.integers("ends", 2, 10)
    if x is None:
        return [None]  # there should be as many starts as axes where none are named, but runtimes take fewer
    named = call.has(3) if call.version >= 10 else "axes" in call.given
    axes = call.integers("axes", 3, 10) if named else [*range(len(starts) if starts is not None else len(x))]
    if axes is None or any(not -len(x) <= axis < len(x) for axis in axes):
        return [unknown(len(x))]
    steps = call.numbers(4) if call.has(4) else [1] * len(axes)
    y = [*x]
    for index, axis in enumerate(axes):
        bounds = (starts, ends, steps)
        known = [bound[index] for bound in bounds if bound is not None and index < len(bound)]
        y[axis] = _left(x[axis], *known) if len(known) == len(bounds) and known[2] else None
    return [y]


def _left(size: Size, start: int, end: int, step: int) -> Size:
    """Returns what a slice leaves of an axis."""
    if isinstance(size, int):
        return len(taken(size, start, end, step))
    return size if (start, step) == (0, 1) and end >= END else None


def gather_nd(call: Call) -> list[Dims]:
    """Returns the shapes of GatherND: a scalar, too, which onnx does not tell from what it does not know."""
    data, indices = call.dims(0), call.dims(1)
    if data is None or not indices or not isinstance(indices[-1], int):
        return [None]
    return [[*indices[:-1], *data[call.given.get("batch_dims", 0) + indices[-1] :]]]


def reshape(call: Call) -> list[Dims]:
    """Returns the shapes of Reshape: there are as many axes as the shape has elements."""
    x = call.dims(0)
    shape = call.given.get("shape") if call.version < 5 else call.vector(1)
    if shape is None:
        return [None]
    wanted: Sequence[Size] = shape if isinstance(shape, list) else shape.sizes
    copies = not call.given.get("allowzero", 0)
    y: list[Size] = []
    for axis, size in enumerate(wanted):
        if size == 0 and copies:
            y.append(x[axis] if x is not None and axis < len(x) else None)
        else:
            y.append(size)
    # what is computed may turn out to be 0 or -1, but then the dimension is not the one that a symbol says
    if -1 in y:
        y[y.index(-1)] = _rest(x, [size for size in y if size != -1])
    return [[size_of(size) for size in y]]


def _rest(x: Dims, others: Sequence[Size]) -> Size:
    """Returns what is left for the one dimension that is not given."""
    if x is None or None in x or None in others or 0 in x or 0 in others:
        return None
    symbols = [size for size in x if isinstance(size, str)]
    for size in others:
        if isinstance(size, str):
            if size not in symbols:
                return None
            symbols.remove(size)
    whole = math.prod(size for size in x if isinstance(size, int))
    part = math.prod(size for size in others if isinstance(size, int))
    if whole % part:
        return None
    if not symbols:
        return whole // part
    return symbols[0] if len(symbols) == 1 and whole == part else None


def transpose(call: Call) -> list[Dims]:
    """Returns the shapes of Transpose: `perm` tells the rank, too."""
    x, perm = call.dims(0), call.given.get("perm")
    if perm is None:
        return [x[::-1] if x is not None else None]
    if x is None or sorted(perm) != [*range(len(x))]:
        return [unknown(len(perm)) if x is None else None]
    return [[x[axis] for axis in perm]]


def constant_of_shape(call: Call) -> list[Dims]:
    """Returns the shapes of ConstantOfShape: the dimensions are the elements."""
    shape = call.vector(0)
    return [[size_of(one) for one in shape.sizes] if shape is not None and not shape.scalar else None]


def expand(call: Call) -> list[Dims]:
    """Returns the shapes of Expand: the sizes of the input and those asked for, where either is stretched."""
    x, shape = call.dims(0), call.vector(1)
    if x is None or shape is None:
        return [None]
    wanted = [size_of(one) for one in shape.sizes]
    rank = max(len(x), len(wanted))
    pairs = zip(_leading(x, rank), _leading(wanted, rank), strict=True)
    return [[stretched(a, b) for a, b in pairs]]


def _leading(dims: Iterable[Size], rank: int) -> list[Size]:
    dims = [*dims]
    return [*[1] * (rank - len(dims)), *dims]


def tile(call: Call) -> list[Dims]:
    """Returns the shapes of Tile: each size times its count."""
    x, counts = call.dims(0), call.vector(1)
    if x is None:
        return [unknown(len(counts.sizes)) if counts is not None else None]
    if counts is None or len(counts.sizes) != len(x):
        return [unknown(len(x))]
    return [[_times(a, b) for a, b in zip(x, counts.sizes, strict=True)]]


def _times(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return a if b == 1 else b if a == 1 else None


def unsqueeze(call: Call) -> list[Dims]:
    """Returns the shapes of Unsqueeze: there are as many axes more as are named."""
    x, axes = call.dims(0), _axes(call)
    if x is None or axes is None:
        return [None]
    rank = len(x) + len(axes.sizes)
    numbers = axes.numbers
    if numbers is None or any(not -rank <= axis < rank for axis in numbers):
        return [unknown(rank)]
    new = {axis % rank for axis in numbers}
    rest = iter(x)
    return [[1 if axis in new else next(rest, None) for axis in range(rank)]]


def squeeze(call: Call) -> list[Dims]:
    """Returns the shapes of Squeeze: there are as many axes less as are named."""
    x, axes = call.dims(0), _axes(call)
    if x is None or axes is None or len(axes.sizes) > len(x):
        return [None]
    numbers = axes.numbers
    if numbers is None or any(not -len(x) <= axis < len(x) for axis in numbers):
        return [unknown(len(x) - len(axes.sizes))]
    gone = {axis % len(x) for axis in numbers}
    return [[size for axis, size in enumerate(x) if axis not in gone]]


def _axes(call: Call) -> Vector | None:
    """Returns the axes of Squeeze and Unsqueeze, an input from 13 on."""
    if call.version >= 13:
        return call.vector(1)
    named = call.given.get("axes")
    return Vector(tuple(named)) if named is not None else None


def pad(call: Call) -> list[Dims]:
    """Returns the shape of Pad: each size and what is added at its two ends, of all axes or of those that are named."""
    x, pads = call.dims(0), call.integers("pads", 1, 11)
    if x is None:
        return [None]
    axes = call.numbers(3) if call.has(3) else [*range(len(x))]
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return [unknown(len(x))]
    y = [*x]
    for axis, more in zip(axes, map(sum, zip(pads, pads[len(axes) :], strict=False)), strict=True):
        size = y[axis]
        y[axis] = size + more if isinstance(size, int) else None if more else size
    return [y]


def one_hot(call: Call) -> list[Dims]:
    """Returns the shape of OneHot: an axis of the depth is added to those of the indices."""
    indices, depth = call.dims(0), call.numbers(1)
    if indices is None:
        return [None]
    axis, rank = call.given.get("axis", -1), len(indices) + 1
    place = axis + rank if axis < 0 else axis
    return [[*indices[:place], depth[0] if depth else None, *indices[place:]]]


def top_k(call: Call) -> list[Dims]:
    """Returns the shapes of TopK: the axis has the size `k`, which is an attribute below 10, and then an input."""
    x, axis = call.dims(0), call.given.get("axis", -1)
    if x is None:
        return [None] * call.outputs
    y = [*x]
    y[axis] = size_of(call.given["k"] if call.version < 10 else next(iter(call.numbers(1) or ()), None))
    return [[*y] for _ in range(call.outputs)]


def same_rank(call: Call) -> list[Dims]:
    """Keeps the rank; the sizes may change."""
    x = call.dims(0)
    return [unknown(len(x)) if x is not None else None]


def reduce(call: Call) -> list[Dims]:
    """Returns the shape of a reduction: an axis of size 1 stays for each unless `keepdims` is 0."""
    x = call.dims(0)
    if x is None:
        return [None]
    if call.given.get("keepdims", 1):
        return [unknown(len(x))]
    axes = call.vector(1)
    return [unknown(len(x) - len(axes.sizes)) if axes is not None and 0 < len(axes.sizes) <= len(x) else None]
