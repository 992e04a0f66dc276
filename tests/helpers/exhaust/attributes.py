# SPDX-License-Identifier: Apache-2.0
"""The interesting values of attributes, by name or by operator and name, where schemas do not tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exhaust.values import elem_type

BIG = 2**31 - 1
DTYPES = [elem_type(name) for name in
          "float int64 double float16 int32 bool uint8 int8 bfloat16 uint16 int16 uint32 uint64 string float8e4m3fn"
          " float8e5m2 float8e4m3fnuz float8e5m2fnuz int4 uint4 float4e2m1 float8e8m0 int2 uint2".split()]  # fmt: skip

VALUES: dict[str, Sequence[Any]] = {
    "alpha": [1.0, 0.1, 0.5, -0.5, 0.0, 2.0],
    "beta": [1.0, 0.5, 0.0, -1.0],
    "gamma": [1.0, 0.5, -1.0],
    "lambd": [0.5, 0.0, 1.5],
    "bias": [0.0, 0.25, -1.0],
    "epsilon": [1e-5, 1e-3, 0.5, 0.0],
    "momentum": [0.9, 0.5, 0.0],
    "approximate": ["none", "tanh"],
    "direction": ["LEFT", "RIGHT"],
    "detect_negative": [1, 0],
    "detect_positive": [1, 0],
    "stash_type": [1],
    "dtype": DTYPES,
    "to": DTYPES,
    "saturate": [1, 0],
    "seed": [1.0],
    "sample_size": [1, 3],
    "p": [2, 1, 3],
    "Dropout.ratio": [0.5, 0.0, 1.0],
    "round_mode": ["up", "down", "nearest"],
    "output_datatype": [1, 11, 10, 6, 7],
    "Selu.alpha": [1.6732632, 1.0, 0.5],
    "ThresholdedRelu.alpha": [1.0, 0.5, 0.0, -1.0],
    "Celu.alpha": [1.0, 0.5, -0.5, 2.0],
    "start": [0, 1, -1, 2, -3, 5, -(2**62)],
    "end": [1, -1, 2, 0, 7, BIG],
    "EyeLike.k": [0, 1, -1, 3, -3],
    "Mod.fmod": [0, 1],
    "output_dtype": [0, 2, 3, 4, 5, 21, 22, 17, 19, 23],
    "precision": [0, 1, 10],
    "block_size": [0, 1, 2],
    "ignore_index": [-1, 0, 1, 5],
    "reduction": ["none", "sum", "mean"],
    "ScatterElements.reduction": ["none", "add", "mul", "max", "min"],
    "ScatterND.reduction": ["none", "add", "mul", "max", "min"],
    "MeanVarianceNormalization.across_channels": [0, 1],
    "to_float": [0],
}

# Sums of products, where an infinity becomes a NaN in one order and not in the other: floats stay finite and small.
TAME = set(
    """
    AffineGrid Attention AveragePool BatchNormalization CausalConvWithState Col2Im ConvTranspose CumProd CumSum DFT
    DeformConv Det DynamicQuantizeLinear Einsum GRU Gemm GridSample GroupNormalization InstanceNormalization LSTM
    LayerNormalization LinearAttention LpPool GlobalLpPool MeanVarianceNormalization NegativeLogLikelihoodLoss
    RMSNormalization RNN Resize RoiAlign RotaryEmbedding STFT SoftmaxCrossEntropyLoss SwiGLU Upsample
    """.split()
)
