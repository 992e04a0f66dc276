# SPDX-License-Identifier: Apache-2.0
"""The boundaries that a node crosses as it is: the dtypes changed there, or only the wording did.

Ordered by the opset that opens the boundary. Without `direction` an entry holds both ways. `because` stands where
attributes, inputs or outputs changed too and the node may stay all the same: going up, what is new may be absent and
then means the old rule; going down, what the older version knows besides may be absent.

A dtype that gets lost at a boundary is not judged here but once, at the target. Not in this table, because the same
signature means something else on the other side, is every boundary that a family carries: a negative axis below 11,
Softmax and its kin at 13, PRelu at 7, GroupNormalization at 21, Clip and Equal where the dtype decides, and so on.
"""

from __future__ import annotations

from onnx_convert.adapter import AI_ONNX_ML, compatible

# fmt: off
# One name a line would spread this table over ten pages.

compatible("Concat", at=4, direction="down", because="`axis` is always there at 4")

compatible("Gemm", at=6)
compatible(
    "Abs", "Add", "Ceil", "Div", "Dropout", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Max", "Mean",
    "Min", "Mul", "Neg", "PRelu", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh",
    at=6, direction="down", because="`consumed_inputs` was a hint about memory and could be absent",
)

compatible("AveragePool", at=7, direction="up", because="`count_include_pad` defaults to 0, the old rule")

compatible("Max", "Mean", "Min", "Sum", at=8, direction="up")
compatible("MaxPool", at=8, direction="up", because="`storage_order` only concerns the new optional output `Indices`")

compatible("Flatten", "Gemm", "Greater", "Less", "MatMul", "PRelu", at=9)
compatible("Cast", at=9)
compatible("Constant", at=9, direction="up")

compatible("AveragePool", at=10, direction="up", because="`ceil_mode` defaults to 0, the old rule")
compatible("MaxPool", at=10, direction="up", because="`ceil_mode` defaults to 0 and `dilations` to ones, the old rule")
compatible("Upsample", at=10, direction="down", because="only the deprecation is new")

# The pools and convolutions: the texts word the output size under SAME in three ways, runtimes compute one.
compatible("AveragePool", "Conv", "LpPool", "MaxPool", "MaxUnpool", "NonMaxSuppression", at=11)
compatible(
    "ArgMax", "ArgMin", "Compress", "Concat", "Equal", "Flatten", "Gather", "Hardmax", "If", "LogSoftmax", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "Scan", "Slice", "Softmax", "Split", "Squeeze", "Unsqueeze",
    at=11, direction="up",
)
compatible("Constant", at=11, direction="up", because="`sparse_value` is one more way to give the value")
compatible("DepthToSpace", at=11, direction="up", because="`mode` defaults to DCR, the old order")
compatible("Gemm", at=11, direction="up", because="`C` became optional")
compatible("Loop", at=11, direction="up", because="loop-carried values became optional")
compatible("OneHot", at=11, direction="up", because="runtimes have always counted negative indices from the end")
compatible("TopK", at=11, direction="up", because="`largest` and `sorted` default to 1, the old rule")
compatible("Scatter", at=11, direction="down", because="only the deprecation is new")

compatible("MaxPool", "ReduceMax", "ReduceMin", at=12)
compatible("Max", "Min", "Pow", at=12, direction="up")
compatible("Clip", at=12, direction="up")
compatible("ArgMax", "ArgMin", at=12, direction="up", because="`select_last_index` defaults to 0, the old rule")
compatible("Constant", at=12, direction="up", because="`value_float` and its kin are more ways to give the value")
compatible("GatherND", at=12, direction="up", because="`batch_dims` defaults to 0, the old rule")

compatible("MeanVarianceNormalization", at=13, direction="down")
# Mod: 13 speaks of `fmod=1` for floating point only; runtimes go on giving the remainder of C for integers.
compatible(
    "Abs", "Add", "ArgMax", "ArgMin", "Cast", "Ceil", "Clip", "Concat", "Constant", "DepthToSpace", "Div",
    "Dropout", "Equal", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Gemm",
    "Greater", "Identity", "IsNaN", "LRN", "Less", "Log", "MatMul", "Max", "Mean", "Min", "Mod", "Mul", "Neg",
    "NegativeLogLikelihoodLoss", "NonZero", "Pow", "Reciprocal", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare", "Relu", "Reshape", "ScatterElements", "ScatterND", "Shape", "Sigmoid", "Sign", "Size",
    "Slice", "SoftmaxCrossEntropyLoss", "SpaceToDepth", "Sqrt", "Sub", "Sum", "Tanh", "Tile", "Transpose",
    at=13,
)
compatible("If", "Loop", at=13)
compatible("Pad", at=13, direction="up")
compatible("Erf", at=13, direction="down")
compatible(
    "DequantizeLinear", "QuantizeLinear",
    at=13, direction="up", because="`axis` does not matter to a scalar scale, all there was",
)

compatible("Add", "CumSum", "Div", "Mul", "Relu", "Sub", at=14)
compatible("Identity", at=14, direction="up")
compatible("GRU", "LSTM", "RNN", at=14, direction="up", because="`layout` defaults to 0, the old order")
compatible("Reshape", at=14, direction="up", because="`allowzero` defaults to 0, the old rule")

compatible("BatchNormalization", at=15, direction="up")
compatible("Pow", at=15, direction="up")
compatible("Shape", at=15, direction="up", because="`start` and `end` default to the whole shape")

compatible("GreaterOrEqual", "If", "LeakyRelu", "LessOrEqual", "Loop", "PRelu", "Scan", "Where", at=16)
compatible("Identity", at=16, direction="up")
compatible("ScatterElements", "ScatterND", at=16, direction="up", because="`reduction` defaults to none, the old rule")

compatible("OptionalGetElement", "ScatterElements", "ScatterND", at=18, direction="up")
compatible("LpPool", at=18, direction="up", because="`ceil_mode` defaults to 0 and `dilations` to ones, the old rule")
compatible("OptionalHasElement", at=18, direction="up", because="the input became optional")
compatible("Pad", at=18, direction="up", because="without `axes` all axes are meant, the old rule")
compatible(
    "Resize",
    at=18, direction="up", because="`antialias`, `axes` and `keep_aspect_ratio_policy` default to the old rule",
)

compatible("Constant", "Identity", "If", "Loop", "Reshape", "Scan", "Shape", "Size", at=19)
compatible("DequantizeLinear", "Equal", "Pad", "Resize", at=19, direction="up")
compatible("AveragePool", at=19, direction="up", because="`dilations` defaults to ones, the old rule")
compatible("Cast", "CastLike", at=19, direction="up", because="`saturate` only concerns float8, which is new")

compatible("ConstantOfShape", "IsInf", "IsNaN", "ReduceMax", "ReduceMin", at=20)

compatible(
    "Cast", "CastLike", "Constant", "ConstantOfShape", "Flatten", "Identity", "If", "Loop", "Pad", "Reshape",
    "Scan", "Shape", "Size", "Squeeze", "Transpose", "Unsqueeze",
    at=21,
)
compatible("QLinearMatMul", at=21, direction="up")
compatible("DequantizeLinear", at=21, direction="up", because="`block_size` defaults to 0, no blocks")
compatible("QuantizeLinear", at=21, direction="up", because="`block_size` and `output_dtype` default to the old rule")

compatible("AveragePool", "LpPool", "MaxPool", at=22, direction="up")
compatible(
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Bernoulli", "Conv", "ConvTranspose", "Cos",
    "Cosh", "DeformConv", "Det", "Dropout", "Elu", "EyeLike", "GRU", "GlobalAveragePool", "GlobalLpPool",
    "GlobalMaxPool", "GridSample", "HardSigmoid", "HardSwish", "InstanceNormalization", "LSTM", "LpNormalization",
    "MaxRoiPool", "MaxUnpool", "Mish", "Multinomial", "NegativeLogLikelihoodLoss", "RNN",
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "RoiAlign", "Round", "Selu", "Sin",
    "Sinh", "Softplus", "Softsign", "Tan", "ThresholdedRelu",
    at=22,
)

compatible(
    "Cast", "CastLike", "Constant", "ConstantOfShape", "Flatten", "Identity", "If", "Loop", "Pad", "Reshape",
    "Scan", "Shape", "Size", "Squeeze", "Transpose", "Unsqueeze",
    at=23,
)
compatible(
    "DequantizeLinear",
    at=23, direction="up", because="`output_dtype` defaults to the dtype of the scale, the old rule",
)
compatible(
    "QuantizeLinear",
    at=23, direction="up", because="`precision` defaults to the dtype of the scale, the old rule",
)

compatible(
    "Constant", "ConstantOfShape", "DequantizeLinear", "Flatten", "Identity", "If", "Loop", "Pad", "QuantizeLinear",
    "Reshape", "Scan", "Shape", "Size", "SplitToSequence", "Squeeze", "TopK", "Transpose", "Unsqueeze",
    at=24,
)
compatible("Attention", at=24, direction="up", because="without `nonpad_kv_seqlen` nothing is padding, the old rule")
compatible("Cast", "CastLike", at=24, direction="up", because="`round_mode` only concerns float8e8m0, which is new")

compatible(
    "Cast", "CastLike", "Constant", "ConstantOfShape", "DequantizeLinear", "Flatten", "Identity", "If", "Loop",
    "Pad", "QuantizeLinear", "Reshape", "Scan", "Shape", "Size", "Squeeze", "Transpose", "Unsqueeze",
    at=25,
)
compatible("Attention", at=25, direction="up", because="the windows default to -1, no window")

compatible("Range", at=27, direction="up", because="`stash_type` only concerns float16 and bfloat16, which are new")

compatible(
    "Cast", "Compress", "DepthToSpace", "DequantizeLinear", "Einsum", "OneHot", "Optional",
    "OptionalGetElement", "OptionalHasElement", "QuantizeLinear", "ReverseSequence", "Unique",
    at=28,
)
compatible("BitShift", "Celu", "Mod", at=28, direction="up")
compatible("ReduceLogSum", "ReduceLogSumExp", at=28, direction="down")
compatible("SpaceToDepth", at=28, direction="up", because="`mode` defaults to DCR, the old order")

compatible(
    "TreeEnsembleClassifier", "TreeEnsembleRegressor",
    at=3, direction="up", because="the tensors are one more way to give the same numbers", domain=AI_ONNX_ML,
)

# Repeated keys: 4 says that the last one counts; where a runtime takes the first, it does so before and after.
compatible(
    "LabelEncoder",
    at=4, direction="up", because="the tensors are one more way to give the same pairs", domain=AI_ONNX_ML,
)

compatible(
    "TreeEnsembleClassifier", "TreeEnsembleRegressor",
    at=5, direction="down", because="only the deprecation is new", domain=AI_ONNX_ML,
)
