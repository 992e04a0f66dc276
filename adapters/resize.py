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

from copy import copy
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import Value, downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import FLOAT
from onnx_convert.adapters.lib.interpolation import SIMPLE, Axis, Method, resample
from onnx_convert.adapters.lib.numbers import Number, Numbers
from onnx_convert.adapters.lib.shapes import collapse, known_size, part, product, ranked, reshape, restore

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Shape

_ROI, _SCALES, _SIZES = range(1, 4)
_COORDINATES: Final = "coordinate_transformation_mode"
_POLICY: Final = "keep_aspect_ratio_policy"
_TF_NEAREST: Final = "tf_half_pixel_for_nn"
_BY_LENGTH: Final = ("align_corners", "tf_crop_and_resize")  # the scale does not enter their coordinates
_AT_11: Final = (_COORDINATES, "cubic_coeff_a", "exclude_outside", "extrapolation_value", "nearest_mode")


# ---- what a node asks for


class Request:
    """The request of a Resize or Upsample node of any version.

    `scales` are a value or, where they are an attribute, numbers; None if `sizes` take their place. Both are for the
    axes that the node names.
    """

    def __init__(self, node: Node) -> None:
        self.node, self.x = node, node.input(0)
        self.named: list[int] = node.attr("axes") or []
        since_11 = node.operator == "Resize" and node.opset >= 11
        self.sizes = _given(node, _SIZES) if since_11 else None
        self.scales: Value | list[float] | None = None
        if node.operator == "Upsample" and node.opset < 9:
            self.scales = node.attr("scales")
        elif self.sizes is None:
            self.scales = node.input(_SCALES if since_11 else 1)
        self.policy: str = (node.attr(_POLICY) if self.sizes is not None else None) or "stretch"
        self.method = Method(node.attr("mode"), "asymmetric", SIMPLE)
        if since_11:
            self.method = Method(
                node.attr("mode"),
                node.attr(_COORDINATES),
                node.attr("nearest_mode"),
                node.attr("cubic_coeff_a"),
                bool(node.attr("exclude_outside")),
                node.attr("extrapolation_value"),
                bool(node.attr("antialias")),
            )

    @property
    def rank(self) -> int:
        """The rank, which the number of scales or sizes tells too if they are for all axes."""
        if self.x.rank is not None:
            return self.x.rank
        if self.named:
            return self.node.rank(0)
        if isinstance(self.scales, list):
            return len(self.scales)
        shape = (self.sizes or self.scales or self.x).shape
        return shape[0] if shape is not None and isinstance(shape[0], int) else self.node.rank(0)

    @property
    def axes(self) -> list[int]:
        """The axes that the node names."""
        return self.named or list(range(self.rank))

    @property
    def lengths(self) -> list[int | None]:
        """The sizes of the named axes, None for each that is not known."""
        x, rank = self.x, self.x.rank
        return [known_size(x, axis if rank is None else self.node.axis(axis, rank)) for axis in self.axes]

    @property
    def known_sizes(self) -> list[int] | None:
        """The sizes that are asked for, if they are constant."""
        known = None if self.sizes is None else self.sizes.constant
        return None if known is None else known.tolist()

    @property
    def known_scales(self) -> list[float] | None:
        """The scales as single precision numbers, also where they follow from sizes; None if they are not known."""
        if isinstance(self.scales, Value):
            return self.scales.constant.tolist() if self.scales.constant is not None else None
        if self.scales is not None:
            return self.scales
        targets, lengths = self.known_sizes, [size for size in self.lengths if size]
        if targets is None or len(lengths) < len(targets):
            return None
        ratios = numpy.array(targets, dtype=numpy.float32) / numpy.array(lengths, dtype=numpy.float32)
        uniform = ratios.min() if self.policy == "not_larger" else ratios.max()
        return ratios.tolist() if self.policy == "stretch" else [float(uniform)] * len(lengths)

    @property
    def is_integral(self) -> bool:
        """Whether it is certain that each length times its scale is a whole number, before any rounding."""
        if self.sizes is not None and self.policy == "stretch":
            return True
        lengths = self.lengths
        if self.sizes is None:
            if (scales := self.known_scales) is None:
                return False
            factors = [Fraction(float(numpy.float32(scale))) for scale in scales]
        else:
            if (sizes := self.known_sizes) is None or not all(lengths):
                return False
            pick = min if self.policy == "not_larger" else max
            factor = pick(Fraction(size, length or 1) for size, length in zip(sizes, lengths, strict=True))
            factors = [factor] * len(lengths)
        return all((factor * (size or 1)).denominator == 1 for factor, size in zip(factors, lengths, strict=True))

    def changes(self, numbers: Numbers) -> list[Axis]:
        """Returns every named axis that may change, with what is known of its sizes."""
        reals, rank, node = numbers.to(FLOAT), self.x.rank, self.node
        axes = self.axes if rank is None else [node.axis(axis, rank) for axis in self.axes]
        roi = reals.of(node.input(_ROI)) if self.method.crops else None
        uniform = self._uniform_scale(reals, axes) if self.policy != "stretch" else None
        found, after = [], self._shape_after()
        for place, axis in enumerate(axes):
            if roi is None and uniform is None and self._stays(axis, place):
                continue
            length, known = reals.size(self.x, axis), after[axis] if after is not None else None
            if uniform is not None:
                scale = uniform
                count = numbers.of((uniform * length + 0.5).floor())
            elif self.sizes is not None:
                count = numbers.of(self.sizes)[place]
                scale = reals.of(count) / length
            else:
                scale = reals.of(self.scales or [])[place]
                count = numbers.of((length * scale).floor())
            count = numbers.of(known) if isinstance(known, int) else count
            start, end = (reals.of(0), reals.of(1)) if roi is None else (roi[place], roi[place + len(axes)])
            found.append(Axis(axis, length, count, scale, start, end))
        return found

    def _stays(self, axis: int, place: int) -> bool:
        """Returns whether it is certain that a named axis, counted from the front, keeps its elements."""
        if self.sizes is None:
            scales = self.known_scales
            return scales is not None and scales[place] == 1
        before, after = self.x.shape, self._shape_after()
        return before is not None and after is not None and before[axis] == after[axis] is not None

    def _shape_after(self) -> Shape | None:
        """Returns what is known of the shape that comes out, if the input has its own."""
        return self.node.output().shape if self.x.name == self.node.input(0).name else None

    def _uniform_scale(self, reals: Numbers, axes: list[int]) -> Number:
        """Returns the one scale that keeps the aspect ratio."""
        sizes = reals.of(self.node.input(_SIZES))
        ratios = [sizes[place] / reals.size(self.x, axis) for place, axis in enumerate(axes)]
        limit = Number.at_most if self.policy == "not_larger" else Number.at_least
        return reduce(limit, ratios)

    def written_out(self, op: Emitter) -> Value:
        """Writes the same with the operators of `interpolation`. Of an unknown rank, all axes before the named ones or
        behind them are made one."""
        axes, x = self.named, self.x
        if x.rank is not None or not axes or min(axes) < 0 <= max(axes):
            return resample(self.node, op, x, self.changes(Numbers(op)), self.rank, self.method)
        if max(axes) < 0:
            tail = -min(axes)
            flat, before = collapse(op, x, tail)
            return restore(op, self._written_out_over(ranked(op, flat, tail + 1), op, tail + 1), before)
        shape, depth = op.Shape(x), max(axes) + 1
        rest = part(op, shape, depth)
        flat = reshape(op, x, op.at(4).Concat(part(op, shape, 0, depth), product(op, rest), axis=0))
        y = self._written_out_over(ranked(op, flat, depth + 1), op, 0)
        return reshape(op, y, op.at(4).Concat(part(op, op.Shape(y), 0, depth), rest, axis=0))

    def _written_out_over(self, x: Value, op: Emitter, further: int) -> Value:
        """Writes the same of the input in another shape, whose named axes are so many places further."""
        other = copy(self)
        other.x, other.named = x, [axis + further for axis in self.named]
        return other.written_out(op)


def _given(node: Node, index: int) -> Value | None:
    """Returns an input unless it is left out, by an empty tensor too."""
    value = node.optional_input(index)
    return None if value is None or value.shape == (0,) else value


# ---- Resize


@downgrade("Resize", at=19)
def symmetric_as_half_pixel(node: Node, op: Emitter) -> Value:
    """half_pixel_symmetric differs from half_pixel only where a length times its scale is no whole number."""
    if node.attr(_COORDINATES) != "half_pixel_symmetric":
        return op.same()
    request = Request(node)
    if not request.is_integral:
        return request.written_out(op)
    if request.sizes is not None and node.attr("mode") != "nearest":
        op.equivalent("a scale that follows from sizes is rounded, and coordinates with it")
    return op.same(coordinate_transformation_mode="half_pixel")


@downgrade("Resize", at=18)
def resize_all_axes(node: Node, op: Emitter) -> Value:
    """Scales and sizes for all axes; no filter where nothing shrinks, no policy where the scale fits the sizes."""
    drop = ("antialias", "axes", _POLICY)
    request = Request(node)
    scales, stretches = request.known_scales, request.policy == "stretch"
    filters = node.attr("antialias") and node.attr("mode") != "nearest"
    fits = stretches or node.attr(_COORDINATES) in _BY_LENGTH or request.is_integral
    if not fits or (filters and (scales is None or min(scales, default=1) < 1)):
        return request.written_out(op)
    x, roi, factors, sizes, numbers = request.x, _given(node, _ROI), _given(node, _SCALES), request.sizes, Numbers(op)
    if not stretches:
        sizes = numbers.vector(axis.count for axis in request.changes(numbers))
    if not node.attr("axes"):
        return op.same(x, roi, factors, sizes, drop=drop)
    roi = _roi_of_all_axes(node, op, roi) if roi is not None and request.method.crops else None
    if sizes is not None:
        return op.same(x, roi, None, _sizes_of_all_axes(node, numbers, sizes), drop=drop)
    return op.same(x, roi, _for_all_axes(node, op, node.input(_SCALES), 1, FLOAT), None, drop=drop)


def _for_all_axes(node: Node, op: Emitter, named: Value, others: float, dtype: int) -> Value:
    """Returns a vector for the named axes with another number for the others."""
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
    """Returns the whole of the axes that are not named: from 0 to 1."""
    axes, rank, dtype, known = node.attr("axes"), node.input(0).rank, node.dtype(_ROI), roi.constant
    half = len(axes)
    if rank is not None and known is not None:
        starts, ends = known[:half].tolist(), known[half:].tolist()
        return op.const(_spread(starts, axes, rank, 0) + _spread(ends, axes, rank, 1), dtype)
    bounds = ((part(op, roi, 0, half), 0), (part(op, roi, half), 1))
    return op.Concat(*(_for_all_axes(node, op, named, others, dtype) for named, others in bounds), axis=0)


def _sizes_of_all_axes(node: Node, numbers: Numbers, sizes: Value) -> Value:
    """Writes the sizes of the named axes, those of the input for the others."""
    x, op, axes = node.input(0), numbers.op, node.attr("axes")
    if x.shape is None:
        if axes == list(range(-len(axes), 0)):
            return op.Concat(part(op, op.Shape(x), 0, axes[0]), sizes, axis=0)
        return op.ScatterElements(op.Shape(x), op.const(axes), sizes, axis=0)
    named = numbers.of(sizes)
    places = {node.axis(axis, len(x.shape)): place for place, axis in enumerate(axes)}
    return numbers.vector(
        named[places[axis]] if axis in places else numbers.size(x, axis) for axis in range(len(x.shape))
    )


@upgrade("Resize", at=13)
def left_out_instead_of_empty(node: Node, op: Emitter) -> Value:
    """Empty `roi` and `scales` are left out; tf_half_pixel_for_nn is half_pixel, rounded half a pixel higher."""
    request = Request(node)
    scales = _given(node, _SCALES) if request.sizes is None else None
    inputs = request.x, _given(node, _ROI), scales, request.sizes
    if node.attr(_COORDINATES) != _TF_NEAREST:
        return op.same(*inputs)
    higher = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(node.attr("nearest_mode"))
    if node.attr("mode") != "nearest" or higher is None:
        return request.written_out(op)
    return op.same(*inputs, nearest_mode=higher, coordinate_transformation_mode="half_pixel")


@downgrade("Resize", at=13)
def empty_instead_of_left_out(node: Node, op: Emitter) -> Value:
    """`roi` and `scales` must be there: empty tensors take the place of those that are not."""
    x, roi, scales = node.input(0), node.optional_input(_ROI), node.optional_input(_SCALES)
    return op.same(x, roi or op.const([], FLOAT), scales or op.const([], FLOAT), node.optional_input(_SIZES))


@upgrade("Resize", at=11)
def asymmetric_coordinates(node: Node, op: Emitter) -> Value:
    """The old rules by name; where it is not known that all scales enlarge or all shrink, first those that enlarge."""
    x, scales, known = node.input(0), node.input(1), Request(node).known_scales
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
    """Leaves what the old rules give to them, and writes out anything else."""
    request = Request(node)
    x, scales, method = request.x, request.known_scales, request.method
    if method.coordinates == "asymmetric" and method.mode == "linear" and request.sizes is None:
        return op.same(x, node.input(_SCALES), drop=_AT_11)
    if scales is None or not _meets_sizes(request, scales) or not _follows_old_rules(method, scales):
        return request.written_out(op)
    return op.same(x, op.const(scales, FLOAT) if request.sizes is not None else node.input(_SCALES), drop=_AT_11)


def _meets_sizes(request: Request, scales: list[float]) -> bool:
    """Returns whether the scales lead to the sizes that are asked for, after rounding down."""
    sizes = request.known_sizes
    if sizes is None:
        return True
    pairs = [(scale, length or 0) for scale, length in zip(scales, request.lengths, strict=True)]
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
    request = Request(node)
    scales = request.known_scales
    enlarges = scales is not None and min(scales, default=1) >= 1
    return op.same(operator="Upsample") if enlarges else request.written_out(op)


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
    request = Request(node)
    scales = request.known_scales
    return op.same(request.x, scales=scales) if scales is not None else request.written_out(op)


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
        return Request(node).written_out(op)
    mode = "bilinear" if mode == "linear" else mode
    return op.same(scales=None, mode=mode, height_scale=scales[2], width_scale=scales[3])
