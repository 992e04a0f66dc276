# SPDX-License-Identifier: Apache-2.0
"""The crossings that nobody has decided yet, so that a node which needs one is refused. The list may only shrink.

`python tests/undecided.py` writes `UNDECIDED` in this file anew from the installed onnx and the table of decisions.
Use the newest onnx for it; with an older one, the boundaries that it does not know fall out.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import onnx.defs
import onnx_convert.adapters
import onnx_convert.adapters.compatible  # noqa: F401
from onnx_convert import opsets, registry

if TYPE_CHECKING:
    from collections.abc import Iterable

Crossing = tuple[str, str, int, str]  # domain, operator, boundary, direction: the key of the registry

UNDECIDED = """
ai.onnx 2 down: GlobalLpPool LpPool Pad Split
ai.onnx 2 up: GlobalLpPool LpPool Pad Split
ai.onnx 3 down: GRU
ai.onnx 3 up: GRU
ai.onnx 4 up: Concat
ai.onnx 5 down: Reshape
ai.onnx 5 up: Reshape
ai.onnx 6 down: BatchNormalization Clip InstanceNormalization Selu Tile
ai.onnx 6 up: Abs Add BatchNormalization Ceil Clip Div Dropout Elu Exp Floor HardSigmoid InstanceNormalization
  LeakyRelu Log Max Mean Min Mul Neg PRelu Reciprocal Relu Selu Sigmoid Sqrt Sub Sum Tanh Tile
ai.onnx 7 down: Acos Add And Asin Atan AveragePool BatchNormalization Cos Div Dropout Equal GRU Gemm Greater LSTM Less
  Mul Multinomial Or PRelu Pow RNN Sin Sub Tan Upsample Xor
ai.onnx 7 up: Add And BatchNormalization Div Dropout Equal GRU Gemm Greater LSTM Less Mul Or PRelu Pow RNN Sub
  Upsample Xor
ai.onnx 8 down: Expand Max MaxPool Mean Min Scan Sum
ai.onnx 9 down: Acosh Asinh Atanh Cast Compress Constant ConstantOfShape Cosh Erf EyeLike IsNaN MaxUnpool
  MeanVarianceNormalization NonZero OneHot Scan Scatter Shrink Sign Sinh TfIdfVectorizer Upsample Where
ai.onnx 9 up: BatchNormalization Scan Upsample
ai.onnx 10 down: AveragePool ConvInteger DequantizeLinear Dropout IsInf MatMulInteger MaxPool Mod NonMaxSuppression
  QLinearConv QLinearMatMul QuantizeLinear Resize ReverseSequence RoiAlign Slice StringNormalizer ThresholdedRelu TopK
ai.onnx 10 up: Dropout Slice TopK Upsample
ai.onnx 11 down: ArgMax ArgMin BitShift Clip Compress Concat ConcatFromSequence Constant ConvTranspose CumSum
  DepthToSpace Det DynamicQuantizeLinear Equal Flatten Gather GatherElements GatherND Gemm If Loop OneHot Pad Range
  ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
  Resize Round Scan ScatterElements ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
  SequenceLength Slice Split SplitToSequence Squeeze TopK Unique Unsqueeze
ai.onnx 11 up: Clip ConvTranspose Pad Resize Scatter
ai.onnx 12 down: ArgMax ArgMin Celu Clip Constant Dropout Einsum GatherND GreaterOrEqual LessOrEqual
  NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss
ai.onnx 12 up: Dropout
ai.onnx 13 down: DequantizeLinear If Loop QuantizeLinear ReduceSum Resize Split Squeeze Unsqueeze
ai.onnx 13 up: Erf ReduceSum Resize Split Squeeze Unsqueeze
ai.onnx 14 down: BatchNormalization GRU HardSwish Identity LSTM RNN Reshape Trilu
ai.onnx 14 up: BatchNormalization
ai.onnx 15 down: Bernoulli CastLike Optional OptionalGetElement OptionalHasElement Shape
ai.onnx 16 down: GridSample Identity If Loop RoiAlign ScatterElements ScatterND
ai.onnx 16 up: RoiAlign
ai.onnx 17 down: BlackmanWindow DFT HammingWindow HannWindow LayerNormalization MelWeightMatrix STFT SequenceMap
ai.onnx 18 down: BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CenterCropPad Col2Im GroupNormalization LpPool Mish
  OptionalGetElement OptionalHasElement Pad ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
  ReduceMin ReduceProd ReduceSumSquare Resize ScatterElements ScatterND Split
ai.onnx 18 up: ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
  ReduceSumSquare Split
ai.onnx 19 down: AveragePool Cast CastLike DeformConv DequantizeLinear Equal Pad QuantizeLinear Resize
ai.onnx 19 up: QuantizeLinear
ai.onnx 20 down: AffineGrid DFT Gelu GridSample ImageDecoder RegexFullMatch StringConcat StringSplit
ai.onnx 20 up: DFT GridSample
ai.onnx 21 down: DequantizeLinear GroupNormalization QLinearMatMul QuantizeLinear
ai.onnx 21 up: GroupNormalization
ai.onnx 23 down: Attention DequantizeLinear QuantizeLinear RMSNormalization RotaryEmbedding
ai.onnx 24 down: Attention Cast CastLike Swish TensorScatter
ai.onnx 25 down: Attention
ai.onnx 26 down: BitCast CumProd
ai.onnx 27 down: CausalConvWithState LinearAttention Range
ai.onnx 28 down: BitShift Mod SpaceToDepth SwiGLU
ai.onnx 28 up: Mod ReduceLogSum ReduceLogSumExp
ai.onnx.ml 2 down: LabelEncoder
ai.onnx.ml 2 up: LabelEncoder
ai.onnx.ml 3 down: TreeEnsembleClassifier TreeEnsembleRegressor
ai.onnx.ml 4 down: LabelEncoder
ai.onnx.ml 5 down: TreeEnsemble
ai.onnx.ml 5 up: TreeEnsembleClassifier TreeEnsembleRegressor
"""


def every_crossing() -> set[Crossing]:
    """All crossings of the installed onnx; what introduces an operator can be crossed downwards only."""
    versions = defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        versions[schema.domain, schema.name].add(schema.since_version)
    return {
        (domain, operator, boundary, direction)
        for (domain, operator), known in versions.items()
        for boundary in known - {1}
        for direction in (opsets.UP, opsets.DOWN)
        if direction == opsets.DOWN or boundary > min(known)
    }


def undecided() -> set[Crossing]:
    """The crossings of the installed onnx for which the registry has no entry."""
    return every_crossing() - {key for key, _ in registry.decisions()}


def listed_undecided(text: str = UNDECIDED) -> set[Crossing]:
    """What a text like `UNDECIDED` lists, as crossings; an indented line goes on with the line above it."""
    crossings = set()
    for paragraph in text.replace("\n  ", " ").splitlines():
        head, _, operators = paragraph.partition(": ")
        for operator in operators.split():
            domain, boundary, direction = head.split()
            crossings.add((opsets.normalise(domain), operator, int(boundary), direction))
    return crossings


def format_undecided(crossings: Iterable[Crossing]) -> str:
    """The text of `UNDECIDED` for these crossings: one paragraph a boundary and direction, operators in order.

    >>> format_undecided([("", "Softmax", 13, "up"), ("", "Hardmax", 13, "up")])
    '\\nai.onnx 13 up: Hardmax Softmax\\n'
    """
    paragraphs = defaultdict(list)
    for domain, operator, boundary, direction in sorted(crossings):
        paragraphs[domain, boundary, direction].append(operator)
    text = "\n"
    for (domain, boundary, direction), operators in sorted(paragraphs.items()):
        line = f"{opsets.shown(domain)} {boundary} {direction}: {' '.join(operators)}"
        text += textwrap.fill(line, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"
    return text


if __name__ == "__main__":
    this = Path(__file__)
    listing = 'UNDECIDED = """{}"""'.format
    source = this.read_text(encoding="utf-8")
    fresh = source.replace(listing(UNDECIDED), listing(format_undecided(undecided())), 1)
    this.write_text(fresh, encoding="utf-8")
