# SPDX-License-Identifier: Apache-2.0
"""Operators with windows: pools, Col2Im, ConvTranspose, RoiAlign."""

from __future__ import annotations

from itertools import product
from math import ceil, prod
from typing import Any

import numpy as np

Array = np.ndarray


def _places(lengths: Any, kernel: Any, strides: Any, dilations: Any, pads: Any, auto_pad: str, ceil_mode: int) -> Any:
    """Returns for each axis the window starts, the pads at the end, and the places of the elements in a window."""
    n, made = len(kernel), []
    strides, dilations, pads = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    for i in range(n):
        extent, begin, end = (kernel[i] - 1) * dilations[i] + 1, pads[i], pads[i + n]
        if auto_pad == "VALID":
            begin = end = 0
        elif auto_pad.startswith("SAME"):
            total = max((-(-lengths[i] // strides[i]) - 1) * strides[i] + extent - lengths[i], 0)
            begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            end = total - begin
        room = lengths[i] + begin + end - extent
        count = (-(-room // strides[i]) if ceil_mode else room // strides[i]) + 1
        count -= int(bool(ceil_mode) and (count - 1) * strides[i] >= lengths[i] + begin)
        starts = [step * strides[i] - begin for step in range(count)]
        made.append((starts, end, [k * dilations[i] for k in range(kernel[i])]))
    return made


def max_pool(
    x: Array, *, kernel_shape: Any, auto_pad: str = "NOTSET", pads: Any = None, strides: Any = None,
    dilations: Any = None, ceil_mode: int = 0, storage_order: int = 0, outputs: int = 1,
) -> Any:  # fmt: skip
    """The largest element of each window, and its index in the flat input; what is in the pads is none."""
    lengths = x.shape[2:]
    axes = _places(lengths, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    shape = (*x.shape[:2], *(len(starts) for starts, _, _ in axes))
    y, indices = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    weights = [prod(lengths[:i]) if storage_order else prod(lengths[i + 1 :]) for i in range(len(lengths))]
    for place in np.ndindex(*shape):
        windows = ([starts[place[i + 2]] + e for e in within] for i, (starts, _, within) in enumerate(axes))
        inside = [at for at in product(*windows) if all(0 <= a < n for a, n in zip(at, lengths, strict=True))]
        best = max(inside, key=lambda at: x[(*place[:2], *at)])
        y[place] = x[(*place[:2], *best)]
        channel = place[0] * x.shape[1] + place[1]
        indices[place] = channel * prod(lengths) + sum(a * w for a, w in zip(best, weights, strict=True))
    return (y, indices) if outputs > 1 else y


def average_pool(
    x: Array, *, kernel_shape: Any, auto_pad: str = "NOTSET", pads: Any = None, strides: Any = None,
    dilations: Any = None, ceil_mode: int = 0, count_include_pad: int = 0,
) -> Array:  # fmt: skip
    """The mean of each window; pads count if they shall, and what `ceil_mode` adds behind them does not."""
    lengths = x.shape[2:]
    axes = _places(lengths, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    y = np.zeros((*x.shape[:2], *(len(starts) for starts, _, _ in axes)), np.float64)
    for place in np.ndindex(*y.shape):
        total, count = 0.0, 0
        windows = ([starts[place[i + 2]] + e for e in within] for i, (starts, _, within) in enumerate(axes))
        for at in product(*windows):
            if all(0 <= a < length for a, length in zip(at, lengths, strict=True)):
                total, count = total + float(x[(*place[:2], *at)]), count + 1
            elif count_include_pad and all(
                a < length + end for a, length, (_, end, _) in zip(at, lengths, axes, strict=True)
            ):
                count += 1
        y[place] = total / count
    return y.astype(x.dtype)


def col2im(
    x: Array, image: Array, block: Array, *, dilations: Any = None, pads: Any = None, strides: Any = None
) -> Array:
    """Each column of blocks is added where its block lay."""
    batch, _, columns = x.shape
    axes = _places(image.tolist(), block.tolist(), strides, dilations, pads, "NOTSET", 0)
    counts = [len(starts) for starts, _, _ in axes]
    if prod(counts) != columns:
        raise ValueError("as many columns as blocks")
    parts = x.reshape(batch, -1, *block.tolist(), *counts)
    y = np.zeros((batch, parts.shape[1], *image.tolist()), x.dtype)
    for k in np.ndindex(*block.tolist()):
        for l in np.ndindex(*counts):  # noqa: E741 (as the text names it)
            at = [starts[l[i]] + within[k[i]] for i, (starts, _, within) in enumerate(axes)]
            if all(0 <= a < image[i] for i, a in enumerate(at)):
                y[(slice(None), slice(None), *at)] += parts[(slice(None), slice(None), *k, *l)]
    return y


def conv_transpose(
    x: Array, w: Array, b: Array | None = None, *, auto_pad: str = "NOTSET", dilations: Any = None, group: int = 1,
    kernel_shape: Any = None, output_padding: Any = None, output_shape: Any = None, pads: Any = None,
    strides: Any = None,
) -> Array:  # fmt: skip
    """Each element of the input is spread by the kernel; then the pads are cut off. Where the number of pads is found
    and odd, below 11, too, they lie as of 11: see the adapter."""
    n, lengths, kernel = x.ndim - 2, x.shape[2:], list(w.shape[2:])
    strides, dilations, extra = strides or [1] * n, dilations or [1] * n, output_padding or [0] * n
    begin, end = list((pads or [0] * 2 * n)[:n]), list((pads or [0] * 2 * n)[n:])
    full = [strides[i] * (lengths[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(n)]
    if auto_pad == "VALID":
        begin, end = [0] * n, [0] * n
    if output_shape or auto_pad.startswith("SAME"):
        wanted = list(output_shape or [])[-n:] or [
            length * stride for length, stride in zip(lengths, strides, strict=True)
        ]
        for i in range(n):
            total = full[i] - wanted[i]
            half, rest = total // 2, total - total // 2
            begin[i], end[i] = (half, rest) if auto_pad == "SAME_UPPER" else (rest, half)
    outs = w.shape[1]
    y = np.zeros((x.shape[0], outs * group, *full), np.float64)
    share = x.shape[1] // group
    for place in np.ndindex(*lengths):
        for k in np.ndindex(*kernel):
            at = tuple(place[i] * strides[i] + k[i] * dilations[i] for i in range(n))
            for g in range(group):
                taken = x[(slice(None), slice(g * share, (g + 1) * share), *place)].astype(np.float64)
                weights = w[(slice(g * share, (g + 1) * share), slice(None), *k)].astype(np.float64)
                y[(slice(None), slice(g * outs, (g + 1) * outs), *at)] += taken @ weights
    y = y[(slice(None), slice(None), *(slice(begin[i], full[i] - end[i]) for i in range(n)))]
    if b is not None:
        y = y + b.astype(np.float64).reshape(1, -1, *[1] * n)
    return y.astype(x.dtype)


def roi_align(
    x: Array, rois: Array, batches: Array, *, output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
    spatial_scale: float = 1.0, mode: str = "avg", coordinate_transformation_mode: str = "output_half_pixel",
) -> Array:  # fmt: skip
    """The mean or the maximum over sampling points in each bin of a region, as every runtime has it."""
    shift = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    y = np.zeros((len(rois), x.shape[1], output_height, output_width), np.float64)
    image = x.astype(np.float64)
    for number, (roi, batch) in enumerate(zip(rois.astype(np.float64), batches.tolist(), strict=True)):
        left, top, right, bottom = (float(edge) * spatial_scale - shift for edge in roi)
        width, height = right - left, bottom - top
        if not shift:  # regions that are too small are made as large as an element
            width, height = max(width, 1.0), max(height, 1.0)
        bin_h, bin_w = height / output_height, width / output_width
        rows, columns = (sampling_ratio or ceil(bin_) for bin_ in (bin_h, bin_w))
        for i, j in product(range(output_height), range(output_width)):
            terms = []
            for row, column in product(range(rows), range(columns)):
                at_y = top + i * bin_h + (row + 0.5) * bin_h / rows
                at_x = left + j * bin_w + (column + 0.5) * bin_w / columns
                terms.append(_neighbours(image[batch], at_y, at_x))
            if not terms:
                continue
            if mode == "max":
                y[number, :, i, j] = np.max([part for term in terms for part in term], axis=0)
            else:
                y[number, :, i, j] = np.sum([np.sum(term, axis=0) for term in terms], axis=0) / max(rows * columns, 1)
    return y.astype(x.dtype)


def _neighbours(image: Array, y: float, x: float) -> list[Array]:
    """Returns the four elements around a point, weighed: nothing of a point more than one element outside."""
    height, width = image.shape[1:]
    if y < -1 or y > height or x < -1 or x > width:
        return [np.zeros(image.shape[0])] * 4
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    return [
        image[:, top, left] * (1 - down) * (1 - across),
        image[:, top, right] * (1 - down) * across,
        image[:, bottom, left] * down * (1 - across),
        image[:, bottom, right] * down * across,
    ]
