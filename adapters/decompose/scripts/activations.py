# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""The mathematics of activations, in ONNX Script. No conversion imports this:
`python tests/helpers/compile_scripts.py` compiles it into `activations.onnxtxt`.

A number takes the dtype of what it is combined with. One that float rounds is a float64, and stands on the right.
"""

from math import pi, sqrt

from numpy import float64
from onnxscript import opset18 as op
from onnxscript import script

ROOT_OF_HALF = float64(sqrt(0.5))
SLOPE = float64(sqrt(2 / pi))
BEND = float64(sqrt(2 / pi) * 0.044715)


@script()
def gelu(x):
    return 0.5 * x * (1.0 + op.Erf(x * ROOT_OF_HALF))


@script()
def gelu_by_tanh(x):
    return 0.5 * x * (1.0 + op.Tanh(x * (x * x * BEND + SLOPE)))


@script()
def hard_swish(x):
    return x * op.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@script()
def mish(x):
    return x * op.Tanh(op.Softplus(x))


@script()
def thresholded_relu(x, alpha: float):
    return op.Where(x > alpha, x, 0.0)
