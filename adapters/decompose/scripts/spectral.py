# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""The mathematics of weights on the mel scale, in ONNX Script. No conversion imports this:
`python tests/helpers/compile_scripts.py` compiles it into `spectral.onnxtxt`.
"""

from onnxscript import opset18 as op
from onnxscript import script

DOUBLE = 11


@script()
def _count_up(length):
    """0, 1, 2, ...: as many as the one element of a vector says. Range would have to be replaced below opset 11."""
    return op.Squeeze(op.NonZero(op.Expand(1, length)), [0])


@script()
def mel_weights(bands, length, rate, lower, upper):
    """Each band rises to its centre, where it is 1, and falls: double [length / 2 + 1, bands]. Vectors of one element
    come in, the first two of int64, the others of double."""
    low = op.Log(lower / 700.0 + 1.0)
    high = op.Log(upper / 700.0 + 1.0)
    points = bands + 2
    step = (high - low) / op.Cast(points, to=DOUBLE)
    mels = op.Cast(_count_up(points), to=DOUBLE) * step + low
    hertz = (op.Exp(mels) - 1.0) * 700.0
    bins = op.Floor(hertz * op.Cast(length + 1, to=DOUBLE) / rate)
    left = bins[:-2]
    centre = bins[1:-1]
    right = bins[2:]
    row = op.Cast(op.Unsqueeze(_count_up(length / 2 + 1), [1]), to=DOUBLE)
    rise = (row - left) / op.Max(centre - left, 1.0)
    fall = (right - row) / op.Max(right - centre, 1.0)
    peak = op.Max(1.0 - op.Abs(row - centre), 0.0)
    return op.Max(op.Min(rise, fall), peak)
