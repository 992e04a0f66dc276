# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, and those of optionals and sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


def as_it_is(x: Any) -> Any:
    """Optional, OptionalGetElement and Identity of a value: numpy has no optionals."""
    return x


def non_zero(x: Array) -> Array:
    """Indices, a row for each axis; of a scalar there are none, unlike in numpy."""
    return np.array(np.nonzero(x), dtype=np.int64) if x.ndim else np.zeros((0, int(bool(x))), np.int64)


def slice_(x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    """Negative bounds count from the end, then all are clamped; going back, a start before the first is the first."""
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        axis = place if axes is None else int(axes[place]) % x.ndim
        step, size = 1 if steps is None else int(steps[place]), x.shape[axis]
        first, stop = (bound + size if bound < 0 else bound for bound in (start, end))
        if step > 0:
            taken = range(min(max(first, 0), size), min(max(stop, 0), size), step)
        else:
            taken = range(min(max(first, 0), size - 1), min(max(stop, -1), size - 1), step)
        x = np.take(x, np.array(taken if size else [], np.int64), axis=axis)
    return x


def gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    """Slices along an axis, in the shape of their indices; negative ones count from the end."""
    return np.take(x, indices, axis=axis)


def unsqueeze(x: Array, given: Array | None = None, *, axes: Any = None) -> Array:
    """The axes are those of the result, in any order."""
    wanted = [int(axis) for axis in (axes if given is None else given)]
    rank = x.ndim + len(wanted)
    sizes, new = iter(x.shape), {axis % rank for axis in wanted}
    return x.reshape([1 if axis in new else next(sizes) for axis in range(rank)])


def reverse_sequence(x: Array, lengths: Array, *, batch_axis: int = 1, time_axis: int = 0) -> Array:
    """Of each batch so many elements from the first on are reversed."""
    y = x.copy()
    for batch, length in enumerate(lengths.tolist()):
        for step in range(length):
            place: list[Any] = [slice(None)] * x.ndim
            source = list(place)
            place[batch_axis] = source[batch_axis] = batch
            place[time_axis], source[time_axis] = step, length - 1 - step
            y[tuple(place)] = x[tuple(source)]
    return y


def sequence_insert(sequence: list[Array], tensor: Array, position: Array | None = None) -> list[Array]:
    """Before the element at a position; a negative one counts from the end, and without one it is the last."""
    count = len(sequence)
    place = count if position is None else int(position)
    place += count if place < 0 else 0
    return [*sequence[:place], tensor, *sequence[place:]]


def unique(x: Array, *, axis: int | None = None, sorted: int = 1, outputs: int = 1) -> Any:  # noqa: A002 (its name)
    """Elements or slices that differ, ascending or as they come first; with places, ways back and counts."""
    rows = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    first: dict[tuple[Any, ...], int] = {}
    keys = [tuple(row.tolist()) for row in rows]
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    order = list(first)
    if sorted:
        order.sort()
    number = {key: place for place, key in enumerate(order)}
    indices = [first[key] for key in order]
    inverse = [number[key] for key in keys]
    counts = [keys.count(key) for key in order]
    y = x.reshape(-1)[indices] if axis is None else np.take(x, indices, axis=axis)
    made = (y, *(np.array(numbers, dtype=np.int64) for numbers in (indices, inverse, counts)))
    return made[:outputs] if outputs > 1 else y
