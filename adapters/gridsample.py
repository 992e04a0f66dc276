# SPDX-License-Identifier: Apache-2.0
"""GridSample.

20: any number of spatial axes, below two; the modes are called `linear` and `cubic`, below `bilinear` and `bicubic`.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from onnx_convert.adapters.shapes import BOOL, FLOAT, INT64, part, reshape
from onnx_convert.registry import downgrade, upgrade
from onnx_convert.site import dtype_number

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value

DOUBLE: Final = dtype_number("double")
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
    x, grid, dtype = node.input(0), node.input(1), _working_dtype(node)
    shape, wanted = op.Shape(x), op.Shape(grid)
    grid = grid if node.dtype(1) == dtype else op.Cast(grid, to=dtype)
    sizes = [part(op, shape, axis + 2, axis + 3) for axis in range(axes)]
    count = _product(op, part(op, wanted, 1, -1))
    points = reshape(op, grid, op.Concat(part(op, wanted, 0, 1), count, part(op, wanted, -1), axis=0))
    flat = reshape(op, x, op.Concat(part(op, shape, 0, 2), _product(op, part(op, shape, 2)), axis=0))
    targets = op.Concat(part(op, shape, 0, 2), count, axis=0)
    at = []
    for axis, size in enumerate(sizes):  # the grid names the last axis first
        number = op.Gather(points, op.const(axes - 1 - axis), axis=2)
        at.append(_pixel(node, op, number, op.Cast(size, to=dtype)))
    mode = node.attr("mode")
    if mode not in ("cubic", "bicubic"):
        at = [_back_inside(node, op, number, size) for number, size in zip(at, sizes, strict=True)]
    if mode == "nearest":
        y = _elements(node, op, flat, sizes, [op.Round(number) for number in at], targets)
    else:
        op.equivalent("the interpolation is written out, and may round otherwise")
        y = (_linear if mode in ("linear", "bilinear") else _cubic)(node, op, flat, sizes, at, targets)
    return reshape(op, y, op.Concat(part(op, shape, 0, 2), part(op, wanted, 1, -1), axis=0))


def _working_dtype(node: Node) -> int:
    """Where points lie and how much they weigh is found in single precision at least."""
    return DOUBLE if node.dtype(1) == DOUBLE else FLOAT


def _product(op: Emitter, sizes: Value) -> Value:
    return op.at(17).ReduceProd(sizes, axes=[0], keepdims=1)


def _pixel(node: Node, op: Emitter, at: Value, size: Value) -> Value:
    """From -1..1 to elements of the input."""
    half, one, two = (op.const([number], _working_dtype(node)) for number in (0.5, 1, 2))
    scaled = op.Div(op.Add(at, one), two)
    return op.Mul(scaled, op.Sub(size, one)) if node.attr("align_corners") else op.Sub(op.Mul(scaled, size), half)


def _back_inside(node: Node, op: Emitter, pixel: Value, length: Value) -> Value:
    """Back to the elements of the input, if the padding says so."""
    dtype, corners, padding = _working_dtype(node), node.attr("align_corners"), node.attr("padding_mode")
    if padding == "zeros":
        return pixel
    zero, half, one, two = (op.const([number], dtype) for number in (0, 0.5, 1, 2))
    size = op.Cast(length, to=dtype)
    last = op.Sub(size, one)
    if padding == "reflection":  # a triangle wave: how far into a period, there and back again
        width = op.Max(last, half) if corners else size  # one element reflects to itself
        distance, period = pixel if corners else op.Add(pixel, half), op.Mul(width, two)
        into = op.Sub(distance, op.Mul(op.Floor(op.Div(distance, period)), period))
        pixel = op.Sub(width, op.Abs(op.Sub(into, width)))
        pixel = pixel if corners else op.Sub(pixel, half)
    return op.Min(op.Max(pixel, zero), last)


Taps = list[tuple["Value", "Value"]]  # along one axis: indices, and how much what is there weighs


def _linear(node: Node, op: Emitter, flat: Value, sizes: list[Value], at: list[Value], targets: Value) -> Value:
    """The sum over the corners of the cell that a point lies in."""
    one, sides = op.const([1], _working_dtype(node)), []
    for number in at:
        low = op.Floor(number)
        after = op.Sub(number, low)
        sides.append([(low, op.Sub(one, after)), (op.Add(low, one), after)])
    return _weighed(node, op, flat, sizes, sides, targets)


def _cubic(node: Node, op: Emitter, flat: Value, sizes: list[Value], at: list[Value], targets: Value) -> Value:
    """The sum over four elements along each axis; each is brought back inside for itself."""
    sides = []
    for number, size in zip(at, sizes, strict=True):
        low = op.Floor(number)
        after = op.Sub(number, low)
        taps = []
        for step, (flip, terms) in zip((-1, 0, 1, 2), ((0, _FAR), (0, _NEAR), (1, _NEAR), (1, _FAR)), strict=True):
            distance = op.Sub(op.const([1], _working_dtype(node)), after) if flip else after
            index = op.Add(low, op.const([step], _working_dtype(node))) if step else low
            taps.append((_back_inside(node, op, index, size), _polynomial(node, op, distance, terms)))
        sides.append(taps)
    return _weighed(node, op, flat, sizes, sides, targets)


def _polynomial(node: Node, op: Emitter, x: Value, terms: tuple[float, ...]) -> Value:
    """The sum of powers, from the highest down to the constant."""
    value = op.const([terms[0]], _working_dtype(node))
    for term in terms[1:]:
        value = op.Mul(value, x)
        value = op.Add(value, op.const([term], _working_dtype(node))) if term else value
    return value


def _weighed(node: Node, op: Emitter, flat: Value, sizes: list[Value], sides: list[Taps], targets: Value) -> Value:
    """The sum of the elements at all combinations of taps."""
    dtype, terms = _working_dtype(node), []
    for corner in product(*sides):
        weight = corner[0][1]
        for _, further in corner[1:]:
            weight = op.Mul(weight, further)
        elements = _elements(node, op, flat, sizes, [index for index, _ in corner], targets)
        elements = elements if node.dtype(0) == dtype else op.Cast(elements, to=dtype)
        terms.append(op.Mul(elements, op.at(12).Unsqueeze(weight, axes=[1])))
    total = op.Sum(*terms)
    return total if node.dtype(0) == dtype else op.Cast(total, to=node.dtype(0))


def _elements(node: Node, op: Emitter, flat: Value, sizes: list[Value], indices: list[Value], targets: Value) -> Value:
    """The elements at whole numbers [batch, points], one for each axis; 0 outside of the input."""
    dtype, place = _working_dtype(node), op.const([0])
    outside = op.const([0], dtype)
    for size, index in zip(sizes, indices, strict=True):
        last = op.Sub(op.Cast(size, to=dtype), op.const([1], dtype))
        inside = op.Min(op.Max(index, op.const([0], dtype)), last)
        outside = op.Max(outside, op.Abs(op.Sub(index, inside)))
        place = op.Add(op.Mul(place, size), op.Cast(inside, to=INT64))
    chosen = op.GatherElements(flat, op.Expand(op.at(12).Unsqueeze(place, axes=[1]), targets), axis=2)
    if node.attr("padding_mode") != "zeros":
        return chosen
    absent = op.at(12).Unsqueeze(op.Cast(outside, to=BOOL), axes=[1])
    return op.Where(absent, op.const(0, node.dtype(0)), chosen)
