# SPDX-License-Identifier: Apache-2.0
"""GridSample.

20: any number of spatial axes, below two; the modes are called `linear` and `cubic`, below `bilinear` and `bicubic`.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.shapes import BOOL, INT64, cast, known_size, part, reshape, working_dtype
from onnx_convert.registry import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value

_FOR_IMAGES: Final = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
_FOR_ANY: Final = {of_images: mode for mode, of_images in _FOR_IMAGES.items()}

# How much an element weighs by its distance d up to 1 from the point, and by 1 + d: the cubic with -0.75.
_NEAR: Final = (1.25, -2.25, 0.0, 1.0)
_FAR: Final = (-0.75, 1.5, -0.75, 0.0)


@upgrade("GridSample", at=20)
def name_for_any_rank(node: Node, op: Emitter) -> Value:
    """What was bilinear is linear, bicubic is cubic; the default is called anew, too."""
    return op.same(mode=_FOR_ANY[node.attr("mode")]) if node.has("mode") else op.same()


@downgrade("GridSample", at=20)
def name_for_images(node: Node, op: Emitter) -> Value:
    """For images linear is bilinear, cubic is bicubic; in more or fewer dimensions the neighbours are gathered."""
    x, grid, mode = node.input(0), node.input(1), node.attr("mode")
    rank = x.rank or grid.rank or node.rank(0)
    if rank == 4:
        return op.same(mode=_FOR_IMAGES[mode]) if node.has("mode") else op.same()
    if mode == "cubic":
        node.refuse(f"the rank is {rank}, and only images (rank 4) were interpolated by cubes", "use mode linear")
    return gather_neighbours(node, op, rank - 2)


def gather_neighbours(node: Node, op: Emitter, axes: int) -> Value:
    """From the flattened input the nearest element for each point of the grid, or all around it, weighed."""
    x, grid, dtype, mode = node.input(0), node.input(1), _working_dtype(node), node.attr("mode")
    shape, wanted = op.Shape(x), op.Shape(grid)
    sizes = [_size(op, x, shape, axis + 2) for axis in range(axes)]
    count = _product(op, part(op, wanted, 1, -1))
    points = op.Concat(part(op, wanted, 0, 1), count, part(op, wanted, -1), axis=0)
    points = reshape(op, cast(op, grid, dtype), points)
    flat = reshape(op, x, op.Concat(part(op, shape, 0, 2), _product(op, part(op, shape, 2)), axis=0))
    sides = []
    for axis, size in enumerate(sizes):  # the grid names the last axis first
        pixel = _pixel(node, op, op.Gather(points, op.const(axes - 1 - axis), axis=2), size)
        sides.append(_METHODS[mode](node, op, pixel, size))
    if mode != "nearest":
        op.equivalent("the interpolation is written out, and may round otherwise")
    y = _weighed(node, op, flat, sizes, sides, op.Concat(part(op, shape, 0, 2), count, axis=0))
    return reshape(op, y, op.Concat(part(op, shape, 0, 2), part(op, wanted, 1, -1), axis=0))


def _working_dtype(node: Node) -> int:
    """Where points lie and how much they weigh is found in single precision at least."""
    return working_dtype(node.dtype(1))


def _product(op: Emitter, sizes: Value) -> Value:
    return op.at(17).ReduceProd(sizes, axes=[0], keepdims=1)


def _size(op: Emitter, x: Value, shape: Value, axis: int) -> Value:
    known = known_size(x, axis)
    return part(op, shape, axis, axis + 1) if known is None else op.const([known])


def _float(node: Node, op: Emitter, size: Value, less: int = 0) -> Value:
    """A size, or one less, as a float."""
    dtype, known = _working_dtype(node), size.constant
    if known is not None:
        return op.const(known - less, dtype)
    width = op.Cast(size, to=dtype)
    return op.Sub(width, op.const([less], dtype)) if less else width


# ---- coordinates


def _pixel(node: Node, op: Emitter, at: Value, size: Value) -> Value:
    """From -1..1 to elements of the input."""
    half, one, two = (op.const([number], _working_dtype(node)) for number in (0.5, 1, 2))
    scaled, corners = op.Div(op.Add(at, one), two), node.attr("align_corners")
    pixel = op.Mul(scaled, _float(node, op, size, 1 if corners else 0))
    return pixel if corners else op.Sub(pixel, half)


def _back_inside(node: Node, op: Emitter, pixel: Value, size: Value) -> Value:
    """Back to the elements of the input, if the padding says so."""
    dtype, corners, padding = _working_dtype(node), node.attr("align_corners"), node.attr("padding_mode")
    if padding == "zeros":
        return pixel
    zero, half, two = (op.const([number], dtype) for number in (0, 0.5, 2))
    last = _float(node, op, size, 1)
    if padding == "reflection":  # a triangle wave: how far into a period, there and back again
        width = op.Max(last, half) if corners else _float(node, op, size)  # one element reflects to itself
        distance, period = pixel if corners else op.Add(pixel, half), op.Mul(width, two)
        into = op.Sub(distance, op.Mul(op.Floor(op.Div(distance, period)), period))
        pixel = op.Sub(width, op.Abs(op.Sub(into, width)))
        pixel = pixel if corners else op.Sub(pixel, half)
    return op.Min(op.Max(pixel, zero), last)


# ---- along one axis: places, whether they are outside, and how much what is there weighs

Tap = tuple["Value", "Value | None", "Value | None"]


def _nearest(node: Node, op: Emitter, pixel: Value, size: Value) -> list[Tap]:
    return [_tap(node, op, op.Round(_back_inside(node, op, pixel, size)), size, None)]


def _linear(node: Node, op: Emitter, pixel: Value, size: Value) -> list[Tap]:
    """The ends of the cell that a point lies in."""
    inside, one = _back_inside(node, op, pixel, size), op.const([1], _working_dtype(node))
    low = op.Floor(inside)
    after = op.Sub(inside, low)
    return [_tap(node, op, low, size, op.Sub(one, after)), _tap(node, op, op.Add(low, one), size, after)]


def _cubic(node: Node, op: Emitter, pixel: Value, size: Value) -> list[Tap]:
    """Four elements, each brought back inside for itself."""
    dtype, low, taps = _working_dtype(node), op.Floor(pixel), []
    after = op.Sub(pixel, low)
    before = op.Sub(op.const([1], dtype), after)
    for step, distance, terms in ((-1, after, _FAR), (0, after, _NEAR), (1, before, _NEAR), (2, before, _FAR)):
        index = op.Add(low, op.const([step], dtype)) if step else low
        weight = _polynomial(node, op, distance, terms)
        taps.append(_tap(node, op, _back_inside(node, op, index, size), size, weight))
    return taps


_METHODS: Final = {
    "nearest": _nearest,
    **dict.fromkeys(("linear", "bilinear"), _linear),
    **dict.fromkeys(("cubic", "bicubic"), _cubic),
}


def _polynomial(node: Node, op: Emitter, x: Value, terms: tuple[float, ...]) -> Value:
    """The sum of powers, from the highest down to the constant."""
    value = op.const([terms[0]], _working_dtype(node))
    for term in terms[1:]:
        value = op.Mul(value, x)
        value = op.Add(value, op.const([term], _working_dtype(node))) if term else value
    return value


def _tap(node: Node, op: Emitter, index: Value, size: Value, weight: Value | None) -> Tap:
    """A whole number as a place of the input. What is no number counts as outside, at 0."""
    zero = op.const([0], _working_dtype(node))
    inside = op.Where(op.Greater(index, zero), op.Min(index, _float(node, op, size, 1)), zero)
    place = op.Cast(inside, to=INT64)
    if node.attr("padding_mode") != "zeros":
        return place, None, weight
    return place, op.Cast(op.Sub(index, inside), to=BOOL), weight


# ---- elements


def _weighed(node: Node, op: Emitter, flat: Value, sizes: list[Value], sides: list[list[Tap]], targets: Value) -> Value:
    """The sum of the elements at all combinations of taps."""
    dtype, terms = _working_dtype(node), []
    for corner in product(*sides):
        place, outside, weight = corner[0]
        for size, (further, absent, factor) in zip(sizes[1:], corner[1:], strict=True):
            place = op.Add(op.Mul(place, size), further)
            outside = op.Or(outside, absent) if outside is not None and absent is not None else None
            weight = op.Mul(weight, factor) if weight is not None and factor is not None else None
        chosen = op.GatherElements(flat, op.Expand(op.at(12).Unsqueeze(place, axes=[1]), targets), axis=2)
        if outside is not None:
            chosen = op.Where(op.at(12).Unsqueeze(outside, axes=[1]), op.const(0, node.dtype(0)), chosen)
        if weight is None:
            return chosen
        terms.append(op.Mul(cast(op, chosen, dtype), op.at(12).Unsqueeze(weight, axes=[1])))
    return cast(op, op.Sum(*terms), node.dtype(0))
