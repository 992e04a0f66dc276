# SPDX-License-Identifier: Apache-2.0
"""Inputs whose elements make sense only together: shapes, axes, masks, indices that must differ, boxes.

Each takes the shape of the input, what `roles` found, and a generator; None if it has nothing to go by.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.verification.roles import Allowed

Array = numpy.ndarray[Any, Any]


def _mask(shape: tuple[int, ...], _: Allowed, random: numpy.random.Generator) -> Array:
    """Returns a mask of 0 and 1 that lets something be seen in each row: the first."""
    made = numpy.asarray(random.random(shape) < 0.7).astype(numpy.int64)
    if made.ndim:
        made[..., :1] = 1
    return made


def _distinct(shape: tuple[int, ...], rule: Allowed, _: numpy.random.Generator) -> Array | None:
    """Returns indices that differ along the axis: no text says which of two equal ones wins."""
    if not shape or not math.isfinite(rule.high):
        return None
    axis = rule.like[0] % len(shape) if rule.like else 0
    return numpy.asarray(numpy.indices(shape)[axis] % (int(rule.high) + 1))


def _counted(shape: tuple[int, ...], *_: object) -> Array:
    return numpy.arange(math.prod(shape)).reshape(shape)


def _axes(shape: tuple[int, ...], *_: object) -> Array:
    return numpy.arange(math.prod(shape)).reshape(shape)


def _ones(shape: tuple[int, ...], rule: Allowed, _: numpy.random.Generator) -> Array | None:
    """Returns the axes of length 1."""
    axes = [axis for axis, dim in enumerate(rule.like) if dim == 1][: math.prod(shape)]
    return numpy.array(axes).reshape(shape) if len(axes) == math.prod(shape) else None


def _reshape(shape: tuple[int, ...], rule: Allowed, _: numpy.random.Generator) -> Array | None:
    """Returns the shape that is stated; else all in the first dimension, which fits whatever there is."""
    if rule.like and shape == (len(rule.like),):
        return numpy.array(rule.like)
    return numpy.array([-1, *[1] * (shape[0] - 1)])[: shape[0]] if len(shape) == 1 else None


def _exactly(shape: tuple[int, ...], rule: Allowed, _: numpy.random.Generator) -> Array | None:
    """Returns the values that follow from other inputs."""
    return numpy.array(rule.like).reshape(shape) if math.prod(shape) == len(rule.like) else None


def _scales(shape: tuple[int, ...], *_: object) -> Array:
    made = numpy.ones(shape)
    if made.size > 2:
        made[2:] = 2
    return made


def _sizes(shape: tuple[int, ...], rule: Allowed, _: numpy.random.Generator) -> Array | None:
    """Returns sizes twice as large, but for batch and channel."""
    if shape != (len(rule.like),):
        return None
    return numpy.array([dim * (2 if axis > 1 else 1) for axis, dim in enumerate(rule.like)])


def _boxes(shape: tuple[int, ...], _: Allowed, random: numpy.random.Generator) -> Array:
    """Returns boxes whose second corner lies behind the first."""
    made = random.uniform(0, 2, shape)
    if made.ndim and made.shape[-1] == 4:
        made[..., 2:] += made[..., :2] + 1
    return numpy.asarray(made)


ARRANGEMENTS: Final[dict[str, Callable[[tuple[int, ...], Allowed, numpy.random.Generator], Array | None]]] = {
    "axes": _axes,
    "boxes": _boxes,
    "counted": _counted,
    "distinct": _distinct,
    "exactly": _exactly,
    "mask": _mask,
    "ones": _ones,
    "reshape": _reshape,
    "scales": _scales,
    "sizes": _sizes,
}
