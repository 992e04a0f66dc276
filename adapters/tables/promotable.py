# SPDX-License-Identifier: Apache-2.0
"""The effects of operators on values, which decide the dtypes in which others can travel through them."""

from __future__ import annotations

from onnx_convert.adapter import ARITHMETIC, EXTREMUM, MOVEMENT, NONE, ORDER, promotable

promotable(
    MOVEMENT,
    *"Compress Concat DepthToSpace Expand Flatten Gather GatherElements GatherND Identity OneHot Pad Reshape".split(),
    *"ReverseSequence Scatter ScatterElements ScatterND Slice SpaceToDepth Split Squeeze Tile Transpose".split(),
    *"Trilu Unsqueeze Where".split(),
)
promotable(
    ORDER,
    *"ArgMax ArgMin Clip Equal GlobalMaxPool Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Max MaxPool".split(),
    *"Min NonZero Relu Round Sign TopK Unique".split(),
)
promotable(ARITHMETIC, *"Add Div Mul PRelu Sqrt Sub".split())
promotable(EXTREMUM, *"ReduceMax ReduceMin".split())

# The dtype decides what these compute, or is an attribute of theirs.
promotable(
    NONE,
    *"Bernoulli BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Constant".split(),
    *"ConstantOfShape DequantizeLinear DynamicQuantizeLinear EyeLike If Loop Multinomial QLinearConv".split(),
    *"QLinearMatMul QuantizeLinear RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split(),
    *"Scan Shape Size".split(),
)
