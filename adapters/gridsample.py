# SPDX-License-Identifier: Apache-2.0
"""GridSample.

20: any number of spatial axes, below two; the modes are called `linear` and `cubic`, below `bilinear` and `bicubic`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import INT64, cast, working_dtype
from onnx_convert.adapters.lib.shapes import part

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_FOR_IMAGES: Final = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
_FOR_ANY: Final = {of_images: mode for mode, of_images in _FOR_IMAGES.items()}

# The elements around a point, along one axis, by their distance from the one that is before it or nearest to it.
_STEPS: Final[dict[str, tuple[float, ...]]] = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
# What they weigh: for each power of the point's own distance, from the highest down, a coefficient for each element.
_WEIGHTS: Final[dict[str, tuple[tuple[float, ...], ...]]] = {
    "linear": ((-1, 1), (1, 0)),
    "cubic": ((-0.75, 1.25, -1.25, 0.75), (1.5, -2.25, 1.5, -0.75), (-0.75, 0, 0.75, 0), (0, 1, 0, 0)),
}


@upgrade("GridSample", at=20)
def name_for_any_rank(node: Node, op: Emitter) -> Value:
    """Calls bilinear linear and bicubic cubic; the default is called anew, too."""
    return op.same(mode=_mode(node)) if node.has("mode") else op.same()


@downgrade("GridSample", at=20)
def name_for_images(node: Node, op: Emitter) -> Value:
    """For images linear is bilinear, cubic is bicubic; in more or fewer dimensions the neighbours are gathered."""
    x, grid, mode = node.input(0), node.input(1), _mode(node)
    rank = x.rank or grid.rank or node.rank(0)
    if rank == 4:
        return op.same(mode=_FOR_IMAGES[mode]) if node.has("mode") else op.same()
    return gather_neighbours(node, op, rank - 2)


def gather_neighbours(node: Node, op: Emitter, axes: int) -> Value:
    """Returns the nearest element for each point of the grid, or the sum of all around it, weighed. All are gathered at
    once.

    On the way values are [batch, the point's place on each axis of the grid, an element beside it, axis of the image].
    """
    x, grid, dtype, mode = node.input(0), node.input(1), _working_dtype(node), _mode(node)
    sizes, beside, axis = _sizes(op, x, axes, dtype), axes + 1, axes + 2
    # The grid names the last axis first.
    pixel = _pixel(node, op, op.Gather(cast(op, grid, dtype), op.const(range(axes)[::-1]), axis=axes + 1), sizes)
    if mode == "nearest":  # of two that are as near the even one, counted where the point lies, is brought back inside
        pixel = op.Round(pixel)
    zeros = node.attr("padding_mode") == "zeros"
    if {"nearest": not zeros, "linear": True, "cubic": zeros}[mode]:
        pixel = _back_inside(node, op, pixel, sizes)
    first = pixel if mode == "nearest" else op.Floor(pixel)
    places, steps = op.at(12).Unsqueeze(first, axes=[beside]), _around(_STEPS[mode], axes)
    if mode != "nearest":
        places = op.Add(places, op.const(steps, dtype))
    if mode == "cubic" and not zeros:  # each element is brought back inside for itself
        places = _back_inside(node, op, places, sizes)
    image, zero = op.Transpose(x, perm=[0, *range(2, axis), 1]), op.const(0, dtype)
    frame = int(zeros)  # outside are zeros, of which one on each side is enough
    if frame:
        image = op.Pad(image, op.const([0, *[1] * axes, 0] * 2))
        places = op.Add(places, op.const(1, dtype))
    last = _last(op, sizes, dtype, frame=frame)
    index = op.Where(op.Greater(places, zero), op.Min(places, last), zero)  # the first for what is no number
    chosen = op.GatherND(image, op.Cast(index, to=INT64), batch_dims=1)
    if mode == "nearest":
        y = op.at(12).Squeeze(chosen, axes=[beside])
    else:
        told = "the interpolation is written out, and may round otherwise"
        if mode == "cubic" and node.attr("padding_mode") == "border":
            told += "; each element around a point outside is brought back by itself, which no text specifies"
        op.equivalent(told)
        after = op.at(12).Unsqueeze(op.Sub(pixel, first), axes=[beside])
        weights = _polynomial(op, after, [_around(terms, axes) for terms in _WEIGHTS[mode]], dtype)
        weighed = op.Mul(cast(op, chosen, dtype), op.at(17).ReduceProd(weights, axes=[axis], keepdims=1))
        y = cast(op, op.at(12).ReduceSum(weighed, axes=[beside], keepdims=0), node.dtype(0))
    return op.Transpose(y, perm=[0, axes + 1, *range(1, axes + 1)])


def _mode(node: Node) -> str:
    """Returns the mode as it is called for any number of axes."""
    return _FOR_ANY.get(node.attr("mode"), node.attr("mode"))


def _working_dtype(node: Node) -> int:
    """Returns the dtype in which places and weights of points are found: single precision at least."""
    return working_dtype(node.dtype(1))


def _around(numbers: tuple[float, ...], axes: int) -> numpy.ndarray[Any, Any]:
    """Returns for each element around a point the number that belongs to it along each axis."""
    return numpy.stack(numpy.meshgrid(*[numbers] * axes, indexing="ij"), -1).reshape(-1, axes)


def _sizes(op: Emitter, x: Value, axes: int, dtype: int) -> Value:
    """Returns the sizes of the image, as floats."""
    known = [size for size in (x.shape or ())[2:] if isinstance(size, int)]
    return op.const(known, dtype) if len(known) == axes else op.Cast(part(op, op.Shape(x), 2), to=dtype)


def _last(op: Emitter, sizes: Value, dtype: int, *, frame: int = 0) -> Value:
    """Returns the number of the last element along each axis, behind a frame of so many elements all around."""
    known, more = sizes.constant, 2 * frame - 1
    return op.Add(sizes, op.const(more, dtype)) if known is None else op.const(known + more, dtype)


# ---- coordinates


def _pixel(node: Node, op: Emitter, at: Value, sizes: Value) -> Value:
    """Converts from -1..1 to elements of the input."""
    dtype, corners = _working_dtype(node), node.attr("align_corners")
    half, one, two = (op.const(number, dtype) for number in (0.5, 1, 2))
    pixel = op.Mul(op.Div(op.Add(at, one), two), _last(op, sizes, dtype) if corners else sizes)
    return pixel if corners else op.Sub(pixel, half)


def _back_inside(node: Node, op: Emitter, pixel: Value, sizes: Value) -> Value:
    """Brings points back to the elements of the input, if the padding says so; else to where all around is outside,
    since one that is infinitely far weighs the zeros there by what is no number."""
    dtype, corners, padding = _working_dtype(node), node.attr("align_corners"), node.attr("padding_mode")
    zero, half, two = (op.const(number, dtype) for number in (0, 0.5, 2))
    last = _last(op, sizes, dtype)
    if padding == "zeros":
        return op.Min(op.Max(pixel, op.const(-3, dtype)), _last(op, sizes, dtype, frame=2))
    if padding == "reflection":  # a triangle wave: how far into a period, there and back again
        width = op.Max(last, half) if corners else sizes  # one element reflects to itself
        distance, period = pixel if corners else op.Add(pixel, half), op.Mul(width, two)
        into = op.Sub(distance, op.Mul(op.Floor(op.Div(distance, period)), period))
        pixel = op.Sub(width, op.Abs(op.Sub(into, width)))
        pixel = pixel if corners else op.Sub(pixel, half)
    return op.Min(op.Max(pixel, zero), last)


def _polynomial(op: Emitter, x: Value, terms: list[numpy.ndarray[Any, Any]], dtype: int) -> Value:
    """Returns the sum of powers with these coefficients, from the highest down to the constant."""
    value = op.const(terms[0], dtype)
    for term in terms[1:]:
        value = op.Add(op.Mul(value, x), op.const(term, dtype))
    return value
