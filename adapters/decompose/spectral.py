# SPDX-License-Identifier: Apache-2.0
"""DFT, STFT, BlackmanWindow, HammingWindow, HannWindow, MelWeightMatrix: operators on signals.

17: all of them are there. What changed for DFT later is told in `onnx_convert.adapters.dft`.

A Fourier transform is a product with a matrix of cosines and sines, which is a constant where the length is known.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import pi
from typing import TYPE_CHECKING, Any, Final

import numpy

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.axes import moved, permuted
from onnx_convert.adapters.lib.dtypes import BFLOAT16, DOUBLE, FLOAT, FLOAT16, INT64, cast, is_integer, working_dtype
from onnx_convert.adapters.lib.numbers import Numbers
from onnx_convert.adapters.lib.shapes import END, known_size, part, product, reshape, size_at

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value
    from onnx_convert.adapters.lib.numbers import Number

    Array = numpy.ndarray[Any, Any]

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
    """Sums cosines of the angle that each element stands for."""
    op.equivalent("the cosines may be rounded otherwise")
    numbers = Numbers(op)
    size = numbers.one(node.input(0), 0)
    dtype = node.attr("output_datatype")
    reals = numbers.to(FLOAT if size.known is None and dtype != DOUBLE else DOUBLE)
    turns = reals.of(numbers.up_to(size)) * (2 * pi) / (size if node.attr("periodic") else size - 1)
    first, *others = _COSINES[node.operator]
    total = reals.of(first)
    for k, term in enumerate(others, 1):
        total = total + (turns * k).cos() * term
    if is_integer(dtype):  # which cuts off what is just below a whole number
        total = total + (2**-20 if size.known is None else 2**-40)
    return total.in_dtype(dtype)


# ---- MelWeightMatrix


@downgrade("MelWeightMatrix", at=17)
def triangles_on_the_mel_scale(node: Node, op: Emitter) -> Value:
    """Lets each band rise to its centre, where it is 1, and fall."""
    op.equivalent("the weights, and a bin that lies on an edge, may be rounded otherwise")
    numbers = Numbers(op)
    reals = numbers.to(DOUBLE)
    bands, length = (numbers.one(node.input(index), 0, END) for index in (0, 1))
    rate, low, high = (reals.of(node.input(index)) for index in (2, 3, 4))
    low, high = ((edge / 700 + 1).log() for edge in (low, high))
    mels = reals.of(numbers.up_to(bands + 2)) * ((high - low) / (bands + 2)) + low
    bins = ((mels.exp() - 1) * 700 * (length + 1) / rate).floor()
    left, centre, right = bins[:-2], bins[1:-1], bins[2:]
    row = reals.of(numbers.row(length // 2 + 1).transposed())
    rise, fall = (row - left) / (centre - left).at_least(1), (right - row) / (right - centre).at_least(1)
    peak = (1 - (row - centre).abs()).at_least(0)
    return rise.at_most(fall).at_least(peak).in_dtype(node.attr("output_datatype"))


# ---- waves

# What the cosines and the sines of a wave meet: the real and the imaginary part of an element, in the rows, for those
# of the outcome, in the columns.
_COSINE: Final = numpy.array([[1, 0], [0, 1]])
_SINE: Final = numpy.array([[0, -1], [1, 0]])


def _waves(
    length: Number, elements: Number, bins: Number, *, inverse: bool = False, real: bool = False
) -> tuple[Number, Number]:
    """Returns cosines and sines [bin, element]: what an element of a signal of that length adds to a bin."""
    numbers = length.numbers
    reals = numbers.to(DOUBLE)
    element = reals.of(numbers.row(elements))
    product = element * numbers.row(bins).transposed()
    turns = (product - (product / length).floor() * length) * (2 * pi) / length
    cosine, sine = turns.cos(), turns.sin()
    if inverse:
        cosine, sine = cosine / length, -sine / length
    if real:  # the other half mirrors this one: all count twice but the first, and an even length's last
        twice = 2 - (1 - element).at_least(0) - (element * 2 - length + 1).at_least(0)
        cosine, sine = cosine * twice, sine * twice
    return cosine, sine


def _table(cosine: Number, sine: Number, parts: int, order: str) -> Array:
    """Returns known waves with an axis for the parts of an element (p) and those of the outcome, in this order."""
    pairs = ((cosine, _COSINE), (sine, _SINE))
    one, other = (numpy.einsum(f"kl,pq->{order}", numpy.asarray(wave.known), where[:parts]) for wave, where in pairs)
    return numpy.asarray(one + other)


# ---- DFT


@downgrade("DFT", at=17)
def multiply_by_waves(node: Node, op: Emitter) -> Value:
    """Multiplies the signals, as rows, by the matrix of waves."""
    op.equivalent("the sum is taken as a product of matrices")
    x, axis, dtype = node.input(0), node.attr("axis"), node.dtype(0)
    work = cast(op, x, working_dtype(dtype))
    if x.rank is not None:
        order = moved(node.axis(axis, x.rank), x.rank - 2, x.rank)
        return cast(op, permuted(op, work, order, lambda signals: _transformed(node, op, signals)), dtype)
    shape, parts = op.Shape(x), op.const([_parts(node)])
    before = part(op, shape, 0, axis) if axis else op.const([], INT64)
    after = part(op, shape, axis + 1, -1) if axis != -2 else op.const([], INT64)
    sizes = (product(op, before), size_at(op, shape, axis), product(op, after), part(op, shape, -1))
    blocks = reshape(op, work, op.Concat(*sizes, axis=0))
    y = permuted(op, blocks, [0, 2, 1, 3], lambda signals: _transformed(node, op, signals))
    return cast(op, reshape(op, y, op.Concat(before, part(op, op.Shape(y), 1, 2), after, parts, axis=0)), dtype)


def _parts(node: Node) -> int:
    """Returns 1 if the outcome is real, 2 if it has an imaginary part."""
    return 1 if node.attr("inverse") and node.attr("onesided") else 2


def _transformed(node: Node, op: Emitter, signals: Value) -> Value:
    """Transforms the last axis but one, of a known rank; the last one holds the parts of each element."""
    numbers, last, made = Numbers(op), (signals.rank or 4) - 2, _parts(node)
    given, size = node.optional_input(1), numbers.size(signals, last)
    length = numbers.one(given, 0, END) if given is not None else (size - 1) * 2 if made == 1 else size
    used = length // 2 + 1 if made == 1 else length  # what lies beyond is cut off, what is missing is 0
    bins = length // 2 + 1 if node.attr("onesided") and made == 2 else length
    if given is not None and (size.number is None or used.number is None or size.number > used.number):
        signals = op.Slice(signals, op.const([0]), used.value, op.const([last]))
        size = numbers.size(signals, last)
    parts, known = known_size(signals, last + 1), size.number
    few = length.number is not None and 4 * length.number * bins.number <= _MOST
    how = {"inverse": bool(node.attr("inverse")), "real": made == 1}
    if few and known is not None and parts is not None:
        table = _table(*_waves(length, size, bins, **how), parts, "lpkq")[..., :made]
        matrix = op.const(table.reshape(known * parts, bins.number * made), signals.dtype or FLOAT)
        rows = op.Reshape(signals, op.const([*[0] * last, known * parts]))
        return op.Reshape(op.MatMul(rows, matrix), op.const([*[0] * last, bins.number, made]))
    elements = used
    if not few:  # nor are they written as a constant
        elements, bins = (numbers.computed(count.value, 0, END, single=True) for count in (size, bins))
    waves = [wave.in_dtype(signals.dtype or FLOAT) for wave in _waves(length, elements, bins, **how)]
    if few:
        waves = [op.Slice(wave, op.const([0]), size.value, op.const([1])) for wave in waves]
    return reduce(op.Add, (
        op.MatMul(wave, _of_parts(numbers, signals, where[:, :made]))
        for wave, where in zip(waves, (_COSINE, _SINE), strict=True)
    ))  # fmt: skip


def _of_parts(numbers: Numbers, signals: Value, where: Array) -> Value:
    """Writes which part of each element goes into which part of the outcome, times what."""
    op, parts, dtype = numbers.op, numbers.size(signals, -1), signals.dtype or FLOAT
    if parts.number is None:
        table = op.Slice(op.const(where, dtype), op.const([0]), parts.value, op.const([0]))
    elif numpy.array_equal(where[: parts.number], numpy.eye(2)):
        return signals
    else:
        table = op.const(where[: parts.number], dtype)
    return op.MatMul(signals, table)


# ---- STFT

_STEP, _WINDOW, _LENGTH = 1, 2, 3


@downgrade("STFT", at=17)
def slide_a_transform(node: Node, op: Emitter) -> Value:
    """A Conv whose kernels are the waves, or the transform of frames that are gathered at run time."""
    op.equivalent("the sum is taken by a convolution, or a product of matrices")
    x, step, window = node.input(0), node.input(_STEP).constant, node.optional_input(_WINDOW)
    numbers, parts, dtype = Numbers(op), known_size(x, 2), node.dtype(0)
    length = _frame(node, numbers)
    bins = length // 2 + 1 if node.attr("onesided") else length
    size, count = length.number, bins.number
    if step is None or not size or parts is None or 4 * size * count > _MOST or dtype not in _FLOATS:
        return _transform_frames(node, numbers, length)
    waves = _table(*_waves(length, length, bins), parts, "kqpl").reshape(2 * count, parts, size)
    work = working_dtype(dtype)
    known = None if window is None else window.constant
    kernels = op.const(waves if known is None else waves * known.astype(numpy.float64), work)
    if window is not None and known is None:
        kernels = op.Mul(kernels, cast(op, window, work))
    signals = op.Transpose(cast(op, x, work), perm=[0, 2, 1])
    frames = op.Conv(signals, kernels, kernel_shape=[size], strides=[int(step.item())])
    return cast(op, op.Reshape(op.Transpose(frames, perm=[0, 2, 1]), op.const([0, 0, count, 2])), dtype)


def _frame(node: Node, numbers: Numbers) -> Number:
    """Returns the length of a frame."""
    window, length = node.optional_input(_WINDOW), node.optional_input(_LENGTH)
    if length is not None:
        return numbers.one(length, 0, END)
    return numbers.size(node.input(0), 1) if window is None else numbers.size(window, 0)


def _transform_frames(node: Node, numbers: Numbers, length: Number) -> Value:
    """Weighs all frames [batch, frame, element, part] by the window, and sends them through one DFT."""
    op, x, window = numbers.op, node.input(0), node.optional_input(_WINDOW)
    step = numbers.one(node.input(_STEP), 1)
    frames = replace(numbers.size(x, 1) - length, low=0) // step + 1
    places = numbers.row(frames).transposed() * step + numbers.row(length)
    signals = op.Gather(x, places.value, axis=1)
    if window is not None:
        signals = op.Mul(signals, op.at(11).Unsqueeze(window, axes=[1]))
    return op.at(17).DFT(signals, None, axis=2, onesided=node.attr("onesided"))
