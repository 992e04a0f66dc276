# SPDX-License-Identifier: Apache-2.0
"""The experimental operators of opset 1, which no schema describes any more.

They were legal until opset 9 and left with ONNX 1.5 (opset 10); ThresholdedRelu came back as an operator proper at 10
(as MeanVarianceNormalization did at 9: see `normalization`), and DynamicSlice became Slice. Their meaning is that of
the operator documentation of ONNX 1.0 to 1.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import upgrade
from onnx_convert.adapters.lib.shapes import END

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_FUSED = "a runtime may have computed it in one rounding"


@upgrade("ThresholdedRelu", at=10)
def keep_default_threshold(node: Node, op: Emitter) -> Value:
    """The operator proper is the experimental one."""
    return op.same()


@upgrade("DynamicSlice", at=10)
def dynamic_slice_to_slice(node: Node, op: Emitter) -> Value:
    """Slice with inputs is the same."""
    return op.same(operator="Slice")


@upgrade("Affine", at=10)
def scale_and_shift(node: Node, op: Emitter) -> Value:
    """Gives alpha * x + beta."""
    op.equivalent(_FUSED)
    x = node.input(0)
    return op.Add(op.Mul(x, _number(node, op, "alpha", 1.0)), _number(node, op, "beta", 0.0))


@upgrade("Scale", at=10)
def scale(node: Node, op: Emitter) -> Value:
    """Gives scale * x."""
    return op.Mul(node.input(0), _number(node, op, "scale", 1.0))


@upgrade("ScaledTanh", at=10)
def scale_around_tanh(node: Node, op: Emitter) -> Value:
    """Gives alpha * tanh(beta * x)."""
    op.equivalent(_FUSED)
    inner = op.Tanh(op.Mul(node.input(0), _number(node, op, "beta", 1.0)))
    return op.Mul(inner, _number(node, op, "alpha", 1.0))


@upgrade("ParametricSoftplus", at=10)
def scale_around_softplus(node: Node, op: Emitter) -> Value:
    """Gives alpha * ln(exp(beta * x) + 1)."""
    op.equivalent(_FUSED)
    inner = op.Softplus(op.Mul(node.input(0), _number(node, op, "beta", 1.0)))
    return op.Mul(inner, _number(node, op, "alpha", 1.0))


@upgrade("ImageScaler", at=10)
def scale_and_shift_channels(node: Node, op: Emitter) -> Value:
    """Gives scale * x + bias by channel, for an image [N, C, H, W]."""
    op.equivalent(_FUSED)
    scaled = op.Mul(node.input(0), _number(node, op, "scale", 1.0))
    bias = node.attr("bias") or []
    return op.Add(scaled, op.const([[[value]] for value in bias], node.dtype(0))) if bias else scaled


@upgrade("Crop", at=10)
def crop_to_slice(node: Node, op: Emitter) -> Value:
    """Cuts (left, top, right, bottom) off an image [N, C, H, W], or leaves `scale` (height, width) from (left, top)."""
    left, top, right, bottom = node.attr("border") or [0, 0, 0, 0]
    size = node.attr("scale")
    ends = [top + size[0], left + size[1]] if size else [-bottom or END, -right or END]
    return op.at(9).Slice(node.input(0), axes=[2, 3], starts=[top, left], ends=ends)


def _number(node: Node, op: Emitter, name: str, default: float) -> Value:
    """Returns a number of an attribute, in the dtype of the data."""
    return op.const(node.attr(name, default), node.dtype(0))
