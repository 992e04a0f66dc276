# SPDX-License-Identifier: Apache-2.0
"""Resize, Upsample.

7: Upsample has a scale for each axis, below for height and width; `bilinear` becomes `linear`.
9: the scales of Upsample are an input, below an attribute.
10: Upsample becomes Resize, which shrinks too; nearest elements are found downwards when it enlarges, upwards when it
shrinks, and coordinates are asymmetric.
11: Resize has `roi`, `sizes`, and ways to choose coordinates, the nearest element, and a cubic filter.
13: `roi` and `scales` may be left out; `tf_half_pixel_for_nn` is gone.
18: `axes`, `antialias`, `keep_aspect_ratio_policy`.
19: `half_pixel_symmetric`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapters.lib.dtypes import FLOAT
from onnx_convert.adapters.lib.interpolation import SIMPLE, Axis, Calculator, Method, resample, vector, whole
from onnx_convert.adapters.lib.shapes import known_size, part, size_at
from onnx_convert.registry import downgrade, upgrade
from onnx_convert.site import Value

if TYPE_CHECKING:
    from onnx_convert.adapters.lib.interpolation import Number
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node

_ROI, _SCALES, _SIZES = range(1, 4)
_COORDINATES: Final = "coordinate_transformation_mode"
_POLICY: Final = "keep_aspect_ratio_policy"
_TF_NEAREST: Final = "tf_half_pixel_for_nn"
_BY_LENGTH: Final = ("align_corners", "tf_crop_and_resize")  # the scale does not enter their coordinates
_AT_11: Final = (_COORDINATES, "cubic_coeff_a", "exclude_outside", "extrapolation_value", "nearest_mode")


# ---- what a node asks for


def _given(node: Node, index: int) -> Value | None:
    """An input unless it is left out, by an empty tensor too."""
    value = node.optional_input(index)
    return None if value is None or value.shape == (0,) else value


def _sizes(node: Node) -> Value | None:
    return _given(node, _SIZES) if node.operator == "Resize" and node.opset >= 11 else None


def _scales(node: Node) -> Value | list[float] | None:
    """The scales, wherever this version has them; None if sizes take their place."""
    if node.operator == "Upsample" and node.opset < 9:
        scales: list[float] = node.attr("scales")
        return scales
    if node.operator == "Upsample" or node.opset < 11:
        return node.input(1)
    return node.input(_SCALES) if _sizes(node) is None else None


def _constant(vector: Value | list[float] | None) -> list[float] | None:
    if isinstance(vector, Value):
        return vector.constant.tolist() if vector.constant is not None else None
    return vector


def _rank(node: Node) -> int:
    """The rank, which the number of scales or sizes tells too if they are for all axes."""
    x, sizes, scales = node.input(0), _sizes(node), _scales(node)
    if x.rank is not None or node.attr("axes"):
        return node.rank(0)
    if isinstance(scales, list):
        return len(scales)
    shape = (sizes or scales or x).shape
    return shape[0] if shape is not None and isinstance(shape[0], int) else node.rank(0)


def _numbers(node: Node) -> list[int]:
    """The axes that the node names."""
    named: list[int] = node.attr("axes") or list(range(_rank(node)))
    return named


def _lengths(node: Node) -> list[int | None]:
    """The sizes of the named axes, None for each that is not known."""
    shape = node.input(0).shape
    if shape is None:
        return [None for _ in _numbers(node)]
    found = [shape[node.axis(axis, len(shape))] for axis in _numbers(node)]
    return [size if isinstance(size, int) else None for size in found]


def _known_scales(node: Node) -> list[float] | None:
    """The scales of the named axes as single precision numbers, also where they follow from sizes; None if unknown."""
    sizes = _sizes(node)
    if sizes is None:
        return _constant(_scales(node))
    targets, lengths = _constant(sizes), [size for size in _lengths(node) if size]
    if targets is None or len(lengths) < len(targets):
        return None
    ratios = numpy.array(targets, dtype=numpy.float32) / numpy.array(lengths, dtype=numpy.float32)
    policy = _policy(node)
    uniform = ratios.min() if policy == "not_larger" else ratios.max()
    return ratios.tolist() if policy == "stretch" else [float(uniform)] * len(lengths)


def _policy(node: Node) -> str:
    return (node.attr(_POLICY) if _sizes(node) is not None else None) or "stretch"


def _is_integral(node: Node) -> bool:
    """Whether it is certain that each length times its scale is a whole number, before any rounding."""
    sizes, policy, lengths = _sizes(node), _policy(node), _lengths(node)
    if sizes is not None and policy == "stretch":
        return True
    known = _constant(_scales(node) if sizes is None else sizes)
    if known is None or (sizes is not None and not all(lengths)):
        return False
    if sizes is None:
        factors = [Fraction(float(numpy.float32(scale))) for scale in known]
    else:
        pick = min if policy == "not_larger" else max
        factors = [pick(Fraction(int(size), length or 1) for size, length in zip(known, lengths, strict=True))]
        factors *= len(lengths)
    return all((factor * (size or 1)).denominator == 1 for factor, size in zip(factors, lengths, strict=True))


# ---- written out


def _written_out(node: Node, op: Emitter) -> Value:
    """The same with the operators of `interpolation`."""
    calc = Calculator(op)
    return resample(node, calc, _axes(node, calc), _rank(node), _method(node))


def _method(node: Node) -> Method:
    if node.operator == "Upsample" or node.opset < 11:
        return Method(node.attr("mode"), "asymmetric", SIMPLE)
    return Method(
        node.attr("mode"),
        node.attr(_COORDINATES),
        node.attr("nearest_mode"),
        node.attr("cubic_coeff_a"),
        bool(node.attr("exclude_outside")),
        node.attr("extrapolation_value"),
        bool(node.attr("antialias")),
    )


def _axes(node: Node, calc: Calculator) -> list[Axis]:
    """Every axis that the node names and that may change, with what is known of its sizes."""
    rank, numbers, sizes, scales = _rank(node), _numbers(node), _sizes(node), _scales(node)
    x, roi = node.input(0), node.input(_ROI) if _method(node).crops else None
    before, after = x.shape or (None,) * rank, node.output().shape or (None,) * rank
    uniform = _uniform_scale(node, calc) if _policy(node) != "stretch" else None
    factors = _constant(scales) if sizes is None else None
    found = []
    for place, axis in enumerate(node.axis(number, rank) for number in numbers):
        known = after[axis]
        if sizes is not None:
            stays = known is not None and known == before[axis]
        else:
            stays = factors is not None and factors[place] == 1
        if stays and uniform is None and roi is None:
            continue
        length = _length(calc, x, axis)
        if uniform is not None:
            scale, size = uniform, calc.Floor(calc.Add(calc.Mul(uniform, length), 0.5))
        elif sizes is not None:
            size = _element(calc, sizes, place)
            scale = calc.Div(size, length)
        else:
            scale = _element(calc, scales or [], place)
            size = calc.Floor(calc.Mul(length, scale))
        count = known if isinstance(known, int) else whole(calc.op, size)
        start = _element(calc, roi, place) if roi is not None else vector(0)
        end = _element(calc, roi, place + len(numbers)) if roi is not None else vector(1)
        found.append(Axis(axis, length, count, scale, start, end))
    return found


def _length(calc: Calculator, x: Value, axis: int) -> Number:
    size = known_size(x, axis)
    if size is not None:
        return vector(size)
    shape = calc.once(lambda: calc.op.Shape(x), "Shape", x.name)
    return calc.once(lambda: calc.op.Cast(size_at(calc.op, shape, axis), to=FLOAT), "length", x.name, axis)


def _element(calc: Calculator, values: Value | list[float], place: int) -> Number:
    if isinstance(values, list):
        return vector(values[place])
    if values.constant is not None:
        return vector(values.constant[place])
    one = part(calc.op, values, place, place + 1)
    return one if values.dtype == FLOAT else calc.op.Cast(one, to=FLOAT)


def _uniform_scale(node: Node, calc: Calculator) -> Number:
    """The one scale that keeps the aspect ratio."""
    rank, sizes, x = _rank(node), node.input(_SIZES), node.input(0)
    ratios = [
        calc.Div(_element(calc, sizes, place), _length(calc, x, node.axis(axis, rank)))
        for place, axis in enumerate(_numbers(node))
    ]
    uniform = ratios[0]
    for ratio in ratios[1:]:
        uniform = calc.Min(uniform, ratio) if _policy(node) == "not_larger" else calc.Max(uniform, ratio)
    return uniform


# ---- Resize


@downgrade("Resize", at=19)
def symmetric_as_half_pixel(node: Node, op: Emitter) -> Value:
    """half_pixel_symmetric differs from half_pixel only where a length times its scale is no whole number."""
    if node.attr(_COORDINATES) != "half_pixel_symmetric":
        return op.same()
    if _is_integral(node):
        return op.same(coordinate_transformation_mode="half_pixel")
    return _written_out(node, op)


@downgrade("Resize", at=18)
def resize_all_axes(node: Node, op: Emitter) -> Value:
    """Scales and sizes for all axes; no filter where nothing shrinks, no policy where the scale fits the sizes."""
    drop = ("antialias", "axes", _POLICY)
    policy, scales = _policy(node), _known_scales(node)
    filters = node.attr("antialias") and node.attr("mode") != "nearest"
    fits = policy == "stretch" or node.attr(_COORDINATES) in _BY_LENGTH or _is_integral(node)
    if not fits or (filters and (scales is None or min(scales, default=1) < 1)):
        return _written_out(node, op)
    x, roi, factors, sizes = node.input(0), _given(node, _ROI), _given(node, _SCALES), _sizes(node)
    if policy != "stretch":
        calc = Calculator(op)
        counts = [op.const([axis.count]) if isinstance(axis.count, int) else axis.count for axis in _axes(node, calc)]
        sizes = op.Concat(*counts, axis=0)
    if not node.attr("axes"):
        return op.same(x, roi, factors, sizes, drop=drop)
    roi = _roi_of_all_axes(node, op, roi) if roi is not None and _method(node).crops else None
    if sizes is not None:
        return op.same(x, roi, None, _sizes_of_all_axes(node, op, sizes), drop=drop)
    return op.same(x, roi, _for_all_axes(node, op, node.input(_SCALES), 1, FLOAT), None, drop=drop)


def _for_all_axes(node: Node, op: Emitter, named: Value, others: float, dtype: int) -> Value:
    """A vector for the named axes with another number for the others."""
    axes, rank, known = node.attr("axes"), node.input(0).rank, named.constant
    if rank is not None and known is not None:
        return op.const(_spread(known.tolist(), axes, rank, others), dtype)
    if rank is not None:
        base = op.const([others] * rank, dtype)
    else:
        base = op.Expand(op.const([others], dtype), op.Shape(op.Shape(node.input(0))))
    return op.ScatterElements(base, op.const(axes), named, axis=0)


def _spread(named: list[float], axes: list[int], rank: int, others: float) -> list[float]:
    numbers = [others] * rank
    for axis, number in zip(axes, named, strict=True):
        numbers[axis] = number
    return numbers


def _roi_of_all_axes(node: Node, op: Emitter, roi: Value) -> Value:
    """The whole of the axes that are not named: from 0 to 1."""
    axes, rank, dtype, known = node.attr("axes"), node.input(0).rank, node.dtype(_ROI), roi.constant
    half = len(axes)
    if rank is not None and known is not None:
        starts, ends = known[:half].tolist(), known[half:].tolist()
        return op.const(_spread(starts, axes, rank, 0) + _spread(ends, axes, rank, 1), dtype)
    bounds = ((part(op, roi, 0, half), 0), (part(op, roi, half), 1))
    return op.Concat(*(_for_all_axes(node, op, named, others, dtype) for named, others in bounds), axis=0)


def _sizes_of_all_axes(node: Node, op: Emitter, sizes: Value) -> Value:
    """The sizes of the named axes, those of the input for the others."""
    x, axes, known = node.input(0), node.attr("axes"), sizes.constant
    if x.shape is None:
        if axes == list(range(-len(axes), 0)):
            return op.Concat(part(op, op.Shape(x), 0, axes[0]), sizes, axis=0)
        return op.ScatterElements(op.Shape(x), op.const(axes), sizes, axis=0)
    places = {node.axis(axis, len(x.shape)): place for place, axis in enumerate(axes)}
    pieces: list[list[int] | Value] = []
    for axis, size in enumerate(x.shape):
        place = places.get(axis)
        number = size if place is None else int(known[place]) if known is not None else None
        if isinstance(number, int):
            pieces.append([number])
        elif place is None:
            pieces.append(size_at(op, op.Shape(x), axis))
        else:
            pieces.append(part(op, sizes, place, place + 1))
    if all(isinstance(piece, list) for piece in pieces):
        return op.const([piece[0] for piece in pieces if isinstance(piece, list)])
    return op.Concat(*(op.const(piece) if isinstance(piece, list) else piece for piece in pieces), axis=0)


@upgrade("Resize", at=13)
def left_out_instead_of_empty(node: Node, op: Emitter) -> Value:
    """Empty `roi` and `scales` are left out; tf_half_pixel_for_nn is half_pixel, rounded half a pixel higher."""
    x, sizes = node.input(0), _sizes(node)
    inputs = x, _given(node, _ROI), _given(node, _SCALES) if sizes is None else None, sizes
    if node.attr(_COORDINATES) != _TF_NEAREST:
        return op.same(*inputs)
    higher = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(node.attr("nearest_mode"))
    if node.attr("mode") != "nearest" or higher is None:
        return _written_out(node, op)
    return op.same(*inputs, nearest_mode=higher, coordinate_transformation_mode="half_pixel")


@downgrade("Resize", at=13)
def empty_instead_of_left_out(node: Node, op: Emitter) -> Value:
    """`roi` and `scales` must be there: empty tensors take the place of those that are not."""
    x, roi, scales = node.input(0), node.optional_input(_ROI), node.optional_input(_SCALES)
    return op.same(x, roi or op.const([], FLOAT), scales or op.const([], FLOAT), node.optional_input(_SIZES))


@upgrade("Resize", at=11)
def asymmetric_coordinates(node: Node, op: Emitter) -> Value:
    """The old rules by name; where it is not known that all scales enlarge or all shrink, first those that enlarge."""
    x, scales, known = node.input(0), node.input(1), _constant(node.input(1))
    empty = op.const([], FLOAT)
    how: dict[str, Any] = {_COORDINATES: "asymmetric"}
    if node.attr("mode") != "nearest":
        return op.same(x, empty, scales, **how)
    if known is not None and min(known, default=1) >= 1:
        return op.same(x, empty, scales, nearest_mode="floor", **how)
    if known is not None and max(known) <= 1:
        return op.same(x, empty, scales, nearest_mode="ceil", **how)
    if known is not None:
        enlarging, shrinking = (op.const([limit(scale, 1) for scale in known], FLOAT) for limit in (max, min))
    else:
        enlarging, shrinking = op.at(8).Max(scales, op.const([1], FLOAT)), op.at(8).Min(scales, op.const([1], FLOAT))
    enlarged = op.Resize(x, empty, enlarging, mode="nearest", nearest_mode="floor", **how)
    return op.same(enlarged, empty, shrinking, nearest_mode="ceil", **how)


@downgrade("Resize", at=11)
def old_rules_or_written_out(node: Node, op: Emitter) -> Value:
    """What the old rules give is left to them, anything else is written out."""
    x, scales, method = node.input(0), _known_scales(node), _method(node)
    if method.coordinates == "asymmetric" and method.mode == "linear" and _sizes(node) is None:
        return op.same(x, node.input(_SCALES), drop=_AT_11)
    if scales is None or not _meets_sizes(node, scales) or not _follows_old_rules(method, scales):
        return _written_out(node, op)
    return op.same(x, op.const(scales, FLOAT) if _sizes(node) is not None else node.input(_SCALES), drop=_AT_11)


def _meets_sizes(node: Node, scales: list[float]) -> bool:
    """Whether the scales lead to the sizes that are asked for, after rounding down."""
    sizes = _constant(_sizes(node))
    if sizes is None:
        return True
    pairs = [(scale, length or 0) for scale, length in zip(scales, _lengths(node), strict=True)]
    wide = [
        int(scale * length) for scale, length in pairs
    ]  # runtimes multiply in single precision, inference in double
    return wide == sizes == [int(numpy.float32(scale) * numpy.float32(length)) for scale, length in pairs]


def _follows_old_rules(method: Method, scales: list[float]) -> bool:
    if method.mode != "nearest":
        return method.mode == "linear" and method.coordinates == "asymmetric"
    if method.coordinates == "asymmetric":
        enlarges = method.nearest == "floor" and min(scales, default=1) >= 1
        return enlarges or (method.nearest == "ceil" and max(scales, default=1) <= 1)
    # By a whole factor each element simply repeats.
    repeats = all(scale == int(scale) for scale in scales)
    return repeats and method.nearest.startswith("round") and method.coordinates in ("half_pixel", "pytorch_half_pixel")


@downgrade("Resize", at=10)
def enlarge_by_upsample(node: Node, op: Emitter) -> Value:
    """Upsample cannot shrink: where a scale may be below 1, it is written out."""
    scales = _known_scales(node)
    if scales is not None and min(scales, default=1) >= 1:
        return op.same(operator="Upsample")
    return _written_out(node, op)


# ---- Upsample


@upgrade("Upsample", at=10)
def rename_to_resize(node: Node, op: Emitter) -> Value:
    """Resize does the same."""
    return op.same(operator="Resize")


@upgrade("Upsample", at=9)
def scales_to_input(node: Node, op: Emitter) -> Value:
    """The attribute becomes a constant."""
    return op.same(node.input(0), op.const(node.attr("scales"), FLOAT), drop=("scales",))


@downgrade("Upsample", at=9)
def scales_to_attribute(node: Node, op: Emitter) -> Value:
    """Constant scales become the attribute; with others it is written out."""
    scales = _known_scales(node)
    return op.same(node.input(0), scales=scales) if scales is not None else _written_out(node, op)


@upgrade("Upsample", at=7)
def scales_for_all_axes(node: Node, op: Emitter) -> Value:
    """Batch and channels stay; `bilinear` is `linear` now."""
    scales = [1.0, 1.0, node.attr("height_scale"), node.attr("width_scale")]
    mode = "linear" if node.attr("mode") == "bilinear" else node.attr("mode")
    return op.same(height_scale=None, width_scale=None, mode=mode, scales=scales)


@downgrade("Upsample", at=7)
def scales_for_height_and_width(node: Node, op: Emitter) -> Value:
    """Two scales suffice for images; any others are written out."""
    scales, mode = node.attr("scales"), node.attr("mode")
    if len(scales) != 4 or scales[:2] != [1, 1]:
        return _written_out(node, op)
    mode = "bilinear" if mode == "linear" else mode
    return op.same(scales=None, mode=mode, height_scale=scales[2], width_scale=scales[3])
