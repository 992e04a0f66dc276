# SPDX-License-Identifier: Apache-2.0
"""DFT, STFT, BlackmanWindow, HammingWindow, HannWindow, MelWeightMatrix: operators on signals.

17: all of them are there. What changed for DFT later is told in `onnx_convert.adapters.dft`.

A Fourier transform is a product with a matrix of cosines and sines, which is a constant where the length is known.
"""

from __future__ import annotations

from math import pi
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import BFLOAT16, DOUBLE, FLOAT, FLOAT16, INT64, cast, working_dtype
from onnx_convert.adapters.lib.script import Compiled
from onnx_convert.adapters.lib.shapes import count_up, known_size, part, product, reshape, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

    Array = numpy.ndarray[Any, Any]

compiled: Final = Compiled("spectral")

_MOST: Final = 1 << 22  # elements of a matrix that is written as a constant
_FLOATS: Final = (FLOAT, FLOAT16, BFLOAT16)  # runtimes convolve no doubles


# ---- windows

_COSINES: Final = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


@downgrade(*_COSINES, at=17)
def sum_of_cosines(node: Node, op: Emitter) -> Value:
    """A constant where the size is one."""
    op.equivalent("the cosines may be rounded otherwise")
    size, dtype, terms = node.input(0), node.attr("output_datatype"), _COSINES[node.operator]
    less = 0 if node.attr("periodic") else 1
    if size.constant is not None:
        count = int(size.constant)
        with numpy.errstate(all="ignore"):  # a symmetric window of one element is no number
            turns = 2 * pi * numpy.arange(count) / numpy.float64(count - less)
        return op.const(sum(term * numpy.cos(k * turns) for k, term in enumerate(terms)), dtype)
    length = cast(op, op.Reshape(size, op.const([1])), INT64)
    gaps = op.Cast(op.Sub(length, op.const([1])) if less else length, to=FLOAT)
    angle = op.Div(op.Mul(op.Cast(count_up(op, length), to=FLOAT), op.const([2 * pi], FLOAT)), gaps)
    total = op.const([terms[0]], FLOAT)
    for k, term in enumerate(terms[1:], 1):
        multiple = op.Mul(angle, op.const([k], FLOAT)) if k > 1 else angle
        total = op.Add(total, op.Mul(op.Cos(multiple), op.const([term], FLOAT)))
    return cast(op, total, dtype)


# ---- MelWeightMatrix


@downgrade("MelWeightMatrix", at=17)
def triangles_on_the_mel_scale(node: Node, op: Emitter) -> Value:
    """Each band rises to its centre, where it is 1, and falls; a constant if all inputs are."""
    op.equivalent("the weights, and a bin that lies on an edge, may be rounded otherwise")
    known = [value.constant for value in node.inputs if value is not None]
    given = [number.item() for number in known if number is not None]
    if len(given) < len(known):
        return cast(op, _triangles_at_run_time(node, op), node.attr("output_datatype"))
    bands, length, rate, *edges = given
    low, high = (numpy.log(1 + edge / 700) for edge in edges)
    mels = low + numpy.arange(bands + 2) * ((high - low) / (bands + 2))
    bins = numpy.floor((length + 1) * (700 * (numpy.exp(mels) - 1)) / rate)
    left, centre, right = bins[:-2], bins[1:-1], bins[2:]
    row = numpy.arange(length // 2 + 1)[:, None]
    rise, fall = (row - left) / numpy.maximum(centre - left, 1), (right - row) / numpy.maximum(right - centre, 1)
    peak = numpy.maximum(1 - numpy.abs(row - centre), 0)
    return op.const(numpy.maximum(numpy.minimum(rise, fall), peak), node.attr("output_datatype"))


def _triangles_at_run_time(node: Node, op: Emitter) -> Value:
    counts = (cast(op, op.Reshape(node.input(index), op.const([1])), INT64) for index in (0, 1))
    numbers = (op.Cast(node.input(index), to=DOUBLE) for index in (2, 3, 4))
    return op.call(compiled.mel_weights, *counts, *numbers)


# ---- DFT


@downgrade("DFT", at=17)
def multiply_by_waves(node: Node, op: Emitter) -> Value:
    """The signals as rows, times the matrix of waves."""
    op.equivalent("the sum is taken as a product of matrices")
    x, axis, dtype = node.input(0), node.attr("axis"), node.dtype(0)
    work = working_dtype(dtype)
    if x.rank is not None:
        return cast(op, _transformed(node, op, cast(op, x, work), node.axis(axis, x.rank), x.rank), dtype)
    shape = op.Shape(x)
    before = product(op, part(op, shape, 0, axis)) if axis else op.const([1])
    after = product(op, part(op, shape, axis + 1, -1)) if axis != -2 else op.const([1])
    blocks = reshape(op, x, op.Concat(before, size_at(op, shape, axis), after, part(op, shape, -1), axis=0))
    y = _transformed(node, op, cast(op, blocks, work), 1, 4)
    ends = [op.const([_parts(node)])] if axis == -2 else [part(op, shape, axis + 1, -1), op.const([_parts(node)])]
    sizes = [part(op, shape, 0, axis)] if axis else []
    return cast(op, reshape(op, y, op.Concat(*sizes, part(op, op.Shape(y), 1, 2), *ends, axis=0)), dtype)


def _parts(node: Node) -> int:
    """1 if the outcome is real, 2 if it has an imaginary part."""
    return 1 if node.attr("inverse") and node.attr("onesided") else 2


def _transformed(node: Node, op: Emitter, x: Value, axis: int, rank: int) -> Value:
    """The transform of an axis of a known rank."""
    last, real = rank - 2, _parts(node) == 1
    swap = [*range(axis), *range(axis + 1, rank - 1), axis, rank - 1]
    signals = x if axis == last else op.Transpose(x, perm=swap)
    size, length = known_size(x, axis), _length(node, op, x, axis)
    used = _bins(op, length) if real else length  # what lies beyond is cut off, what is missing is 0
    if node.optional_input(1) is not None and not (isinstance(used, int) and size is not None and size <= used):
        end = op.const([used]) if isinstance(used, int) else used
        signals = op.Slice(signals, op.const([0]), end, op.const([last]))
        size = used if isinstance(used, int) and size is not None else None
    parts = known_size(x, rank - 1)
    known = None if size is None or parts is None else (size, parts)
    rows = op.Reshape(signals, op.const([*[0] * last, size * parts if size is not None and parts is not None else -1]))
    bins = _bins(op, length) if node.attr("onesided") and not real else length
    matrix = _matrix(node, op, length, bins, known, signals)
    count = bins if isinstance(bins, int) else -1
    y = op.Reshape(op.MatMul(rows, matrix), op.const([*[0] * last, count, _parts(node)]))
    return y if axis == last else op.Transpose(y, perm=[swap.index(place) for place in range(rank)])


def _length(node: Node, op: Emitter, x: Value, axis: int) -> int | Value:
    """How long the signal is made: a number, or a vector of one element."""
    given, size = node.optional_input(1), known_size(x, axis)
    doubled = _parts(node) == 1
    if given is not None:
        known = given.constant
        return int(known.item()) if known is not None else cast(op, op.Reshape(given, op.const([1])), INT64)
    if size is not None:
        return 2 * (size - 1) if doubled else size
    length = size_at(op, op.Shape(x), axis)
    return op.Mul(op.Sub(length, op.const([1])), op.const([2])) if doubled else length


def _bins(op: Emitter, length: int | Value) -> int | Value:
    """How many bins are different, in the transform of a real signal."""
    if isinstance(length, int):
        return length // 2 + 1
    return op.Add(op.Div(length, op.const([2])), op.const([1]))


def _matrix(
    node: Node, op: Emitter, length: int | Value, bins: int | Value, known: tuple[int, int] | None, signals: Value
) -> Value:
    """[elements of a signal times their parts, bins times theirs]; it has rows for the elements that are there."""
    dtype = signals.dtype or FLOAT
    if isinstance(length, int) and isinstance(bins, int) and 4 * length * bins <= _MOST:
        rows = length // 2 + 1 if _parts(node) == 1 else length
        waves = _waves(node, length, rows, bins)
        if known is not None:
            return op.const(waves[: known[0], : known[1]].reshape(known[0] * known[1], -1), dtype)
        matrix = op.const(waves, dtype)
    else:
        matrix = cast(op, _waves_at_run_time(node, op, length, bins, signals), dtype)
    ends = part(op, op.Shape(signals), -2)
    return op.Flatten(op.Slice(matrix, op.const([0, 0]), ends, op.const([0, 1])), axis=2)


def _waves(node: Node, length: int, rows: int, bins: int) -> Array:
    """[element, part, bin, part]: what each part of an element adds to each part of a bin."""
    number, scale = numpy.arange(rows)[:, None], max(length, 1)
    turns = 2 * pi * (number * numpy.arange(bins) % scale) / scale
    cosine, sine = numpy.cos(turns), numpy.sin(turns)
    if node.attr("inverse"):
        cosine, sine = cosine / scale, -sine / scale
    if _parts(node) == 1:  # the other half mirrors this one: all count twice but the first, and an even length's last
        twice = 2 - (number == 0) - (2 * number == length)
        return numpy.stack([cosine * twice, sine * twice], axis=1)[..., None]
    return numpy.stack([numpy.stack([cosine, -sine], axis=2), numpy.stack([sine, cosine], axis=2)], axis=1)


def _waves_at_run_time(node: Node, op: Emitter, length: int | Value, bins: int | Value, signals: Value) -> Value:
    """What `_waves` tells, for a length that is computed or very large; found in double, as there."""
    scale, count = (op.const([n]) if isinstance(n, int) else n for n in (length, bins))
    number = op.at(11).Unsqueeze(count_up(op, part(op, op.Shape(signals), -2, -1)), axes=[1])
    places = op.Mul(number, count_up(op, count))
    within = op.Sub(places, op.Mul(op.Div(places, scale), scale))
    width = op.Cast(scale, to=DOUBLE)
    turns = op.Div(op.Mul(op.Cast(within, to=DOUBLE), op.const([2 * pi], DOUBLE)), width)
    cosine, sine = op.Cos(turns), op.Sin(turns)
    if node.attr("inverse"):
        cosine, sine = op.Div(cosine, width), op.Neg(op.Div(sine, width))
    if _parts(node) == 1:
        once = [op.Cast(op.Equal(value, other), to=DOUBLE) for value, other in
                ((number, op.const([0])), (op.Add(number, number), scale))]  # fmt: skip
        twice = op.Sub(op.Sub(op.const([2], DOUBLE), once[0]), once[1])
        halves = [op.Mul(wave, twice) for wave in (cosine, sine)]
        return op.Concat(*(op.at(11).Unsqueeze(half, axes=[1, 3]) for half in halves), axis=1)
    pairs = ((cosine, op.Neg(sine)), (sine, cosine))
    return op.Concat(
        *(op.Concat(*(op.at(11).Unsqueeze(wave, axes=[1, 3]) for wave in pair), axis=3) for pair in pairs), axis=1
    )


# ---- STFT

_STEP, _WINDOW, _LENGTH = 1, 2, 3


@downgrade("STFT", at=17)
def slide_a_transform(node: Node, op: Emitter) -> Value:
    """A Conv whose kernels are the waves, or the transform of frames that are gathered at run time."""
    op.equivalent("the sum is taken by a convolution, or a product of matrices")
    x, step, window = node.input(0), node.input(_STEP).constant, node.optional_input(_WINDOW)
    length, parts, dtype = _frame(node), known_size(x, 2), node.dtype(0)
    bins = (length or 0) // 2 + 1 if node.attr("onesided") else length or 0
    if step is None or not length or parts is None or 4 * length * bins > _MOST or dtype not in _FLOATS:
        return _transform_frames(node, op)
    waves = _kernels(length, bins)[:, :parts]
    work = working_dtype(dtype)
    known = None if window is None else window.constant
    kernels = op.const(waves if known is None else waves * known.astype(numpy.float64), work)
    if window is not None and known is None:
        kernels = op.Mul(kernels, cast(op, window, work))
    signals = op.Transpose(cast(op, x, work), perm=[0, 2, 1])
    frames = op.Conv(signals, kernels, kernel_shape=[length], strides=[int(step.item())])
    return cast(op, op.Reshape(op.Transpose(frames, perm=[0, 2, 1]), op.const([0, -1, bins, 2])), dtype)


def _frame(node: Node) -> int | None:
    """The length of a frame, if it is known."""
    window, length = node.optional_input(_WINDOW), node.optional_input(_LENGTH)
    if length is not None:
        return int(length.constant.item()) if length.constant is not None else None
    return known_size(node.input(0), 1) if window is None else known_size(window, 0)


def _kernels(length: int, bins: int) -> Array:
    """[bin and part of the outcome, part of the signal, element]."""
    turns = 2 * pi * (numpy.arange(bins)[:, None] * numpy.arange(length) % length) / length
    cosine, sine = numpy.cos(turns), numpy.sin(turns)
    real, imaginary = numpy.stack([cosine, sine], axis=1), numpy.stack([-sine, cosine], axis=1)
    return numpy.stack([real, imaginary], axis=1).reshape(2 * bins, 2, length)


def _transform_frames(node: Node, op: Emitter) -> Value:
    """All frames [batch, frame, element, part], weighed by the window, go through one DFT."""
    x, window, given = node.input(0), node.optional_input(_WINDOW), node.optional_input(_LENGTH)
    one, total = op.const([1]), part(op, op.Shape(x), 1, 2)
    step = cast(op, op.Reshape(node.input(_STEP), one), INT64)
    if given is not None:
        length = cast(op, op.Reshape(given, one), INT64)
    else:
        length = total if window is None else op.Shape(window)
    frames = op.Add(op.Div(op.Sub(total, length), step), one)
    starts = op.at(11).Unsqueeze(op.Mul(count_up(op, frames), step), axes=[1])
    signals = op.Gather(x, op.Add(starts, count_up(op, length)), axis=1)
    if window is not None:
        signals = op.Mul(signals, op.at(11).Unsqueeze(window, axes=[1]))
    return op.at(17).DFT(signals, None, axis=2, onesided=node.attr("onesided"))
