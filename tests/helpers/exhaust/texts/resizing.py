# SPDX-License-Identifier: Apache-2.0
"""Resize: coordinates by the formulas of its text, in single precision like the scales; lengths are whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray
ROUNDED: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda at: np.ceil(at - np.float32(0.5)),
    "round_prefer_ceil": lambda at: np.floor(at - np.float32(0.5)) + 1,
}


@dataclass
class _Line:
    """One axis: its lengths, the scale, the length before it was made whole, and the part that is looked at."""

    length: int
    count: int
    scale: np.float32
    asked: np.float32
    start: np.float32
    end: np.float32


def resize(
    x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None, *,
    antialias: int = 0, axes: Any = None, coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest", nearest_mode: str = "round_prefer_floor",
) -> Array:  # fmt: skip
    """One axis after the other; what a filter against aliasing does at the edges no text tells."""
    named = [int(axis) % x.ndim for axis in (range(x.ndim) if axes is None or not len(axes) else axes)]
    given = sizes if sizes is not None and sizes.size else None
    lines = _lines(x, named, scales, given, keep_aspect_ratio_policy)
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    if crops and roi is not None and roi.size:
        for place, line in enumerate(lines):
            line.start, line.end = np.float32(roi[place]), np.float32(roi[place + len(named)])
    if antialias and mode != "nearest" and any(line.scale < 1 for line in lines):
        raise NotImplementedError("a filter against aliasing")
    y = x if mode == "nearest" else x.astype(np.float64)
    for axis, line in zip(named, lines, strict=True):
        if line.scale == 1 and line.count == line.length and not crops:
            continue
        at = _coordinates(line, coordinate_transformation_mode)
        if mode == "nearest":
            y = np.take(y, np.clip(ROUNDED[nearest_mode](at), 0, line.length - 1).astype(np.int64), axis=axis)
        else:
            y = np.moveaxis(
                np.moveaxis(y, axis, -1) @ _weights(at, line, mode, cubic_coeff_a, exclude_outside), -1, axis
            )
        outside = (at < 0) | (at > line.length - 1)
        if crops and outside.any():
            if x.dtype.kind == "O":
                raise NotImplementedError("a number among strings")
            value = y.dtype.type(extrapolation_value)
            y = np.where(outside.reshape(-1, *[1] * (y.ndim - 1 - axis)), value, y)
    return y.astype(x.dtype)


def _lines(x: Array, named: list[int], scales: Array | None, sizes: Array | None, policy: str) -> list[_Line]:
    lengths = np.array([x.shape[axis] for axis in named], np.float32)
    if sizes is None:
        factors = np.asarray(scales, np.float32)
        asked = lengths * factors
        counts = np.floor(asked)
    else:
        factors = sizes.astype(np.float32) / lengths
        asked = counts = sizes.astype(np.float32)
        if policy != "stretch":
            factors = np.full_like(factors, factors.min() if policy == "not_larger" else factors.max())
            asked = factors * lengths
            counts = np.floor(asked + np.float32(0.5))
    whole = np.float32(0), np.float32(1)
    return [
        _Line(int(length), int(count), factor, wide, *whole)
        for length, count, factor, wide in zip(lengths, counts, factors, asked, strict=True)
    ]


def _coordinates(line: _Line, how: str) -> Array:
    """Returns for each new element where it lies among the old ones."""
    number, half, last = np.arange(line.count, dtype=np.float32), np.float32(0.5), np.float32(line.length - 1)
    gaps = np.float32(line.count - 1)
    if how == "asymmetric":
        return number / line.scale
    if how == "align_corners":
        return number * last / gaps if line.count > 1 else number * 0
    if how == "tf_crop_and_resize":
        if line.count == 1:
            return number * 0 + half * (line.start + line.end) * last
        return line.start * last + number * (line.end - line.start) * last / gaps
    corner = (number + half) / line.scale
    if how == "tf_half_pixel_for_nn":
        return corner
    if how == "half_pixel_symmetric":
        adjustment = np.float32(line.count) / line.asked
        return np.float32(line.length) / 2 * (1 - adjustment) + corner - half
    return number * 0 if how == "pytorch_half_pixel" and line.count == 1 else corner - half


def _weights(at: Array, line: _Line, mode: str, a: float, exclude_outside: int) -> Array:
    """Returns the matrix from old elements to new ones; elements outside are those at the edges, or do not count."""
    matrix = np.zeros((line.length, len(at)))
    at = np.clip(at, 0, line.length - 1) if mode == "linear" else at
    for column, where in enumerate(at.astype(np.float64)):
        low = int(np.floor(where))
        for index in (low, low + 1) if mode == "linear" else range(low - 1, low + 3):
            inside = 0 <= index < line.length
            if inside or not exclude_outside:
                far = abs(where - index)
                matrix[min(max(index, 0), line.length - 1), column] += 1 - far if mode == "linear" else _cubic(far, a)
    return matrix / matrix.sum(axis=0) if exclude_outside else matrix


def _cubic(far: float, a: float) -> float:
    if far <= 1:
        return (a + 2) * far**3 - (a + 3) * far**2 + 1
    return a * far**3 - 5 * a * far**2 + 8 * a * far - 4 * a if far < 2 else 0.0
