# SPDX-License-Identifier: Apache-2.0
"""The third opinion: onnx's reference evaluator, in which the operators of this folder mean what their texts say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import onnx
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from exhaust.texts import attention, moving, numbers, recurrent, resizing, windows
from onnx_convert.verification.evaluators import reference
from oracle import Feeds, opset_of

EVER = 1000  # below no opset that exists
# Operator, from which opset on and below which, what it means there.
MEANINGS: list[tuple[str, int, int, Callable[..., Any]]] = [
    ("Attention", 23, EVER, attention.attention),
    ("AveragePool", 1, EVER, windows.average_pool),
    ("BatchNormalization", 7, 9, numbers.batch_normalization_7),
    ("BatchNormalization", 9, 14, numbers.batch_normalization_9),
    ("BatchNormalization", 14, EVER, numbers.batch_normalization),
    ("Clip", 6, 11, numbers.clip_6),
    ("Clip", 11, EVER, numbers.clip),
    ("Col2Im", 18, EVER, windows.col2im),
    ("ConvTranspose", 1, EVER, windows.conv_transpose),
    ("Gather", 1, EVER, moving.gather),
    ("LogSoftmax", 1, 13, numbers.log_softmax_1),
    ("LogSoftmax", 13, EVER, numbers.log_softmax),
    ("MatMulInteger", 10, EVER, numbers.matmul_integer),
    ("MaxPool", 1, EVER, windows.max_pool),
    ("MeanVarianceNormalization", 9, EVER, numbers.mean_variance_normalization),
    ("NegativeLogLikelihoodLoss", 12, EVER, numbers.negative_log_likelihood),
    ("NonZero", 9, EVER, moving.non_zero),
    ("Optional", 15, EVER, moving.as_it_is),
    ("OptionalGetElement", 15, EVER, moving.as_it_is),
    ("Pow", 7, EVER, numbers.power),
    ("QLinearMatMul", 10, EVER, numbers.qlinear_matmul),
    ("QuantizeLinear", 10, EVER, numbers.quantize),
    *((f"Reduce{name}", 1, EVER, numbers.reduction(f"Reduce{name}"))
      for name in ("L1", "L2", "LogSumExp", "Mean", "Prod", "SumSquare")),
    ("Resize", 11, EVER, resizing.resize),
    ("ReverseSequence", 10, EVER, moving.reverse_sequence),
    ("RoiAlign", 10, EVER, windows.roi_align),
    ("SequenceInsert", 11, EVER, moving.sequence_insert),
    ("Shrink", 9, EVER, numbers.shrink),
    ("Slice", 10, EVER, moving.slice_),
    ("Unique", 11, EVER, moving.unique),
    ("Unsqueeze", 1, EVER, moving.unsqueeze),
    *((name, 7, EVER, recurrent.recurrent(name)) for name in recurrent.GATES),
]  # fmt: skip


def meaning(operator: str, opset: int) -> Callable[..., Any] | None:
    """Returns what an operator means at an opset, None if nobody wrote it down."""
    return next((function for name, least, below, function in MEANINGS if name == operator and least <= opset < below),
                None)  # fmt: skip


def run(model: ModelProto, feeds: Feeds) -> list[Any]:
    """Returns the outputs of a model by the texts; raises what the reference raises."""
    base = reference(model)
    opset = opset_of(model)
    ours = {("", operator): _implementation(operator, opset) for operator, *_ in MEANINGS if meaning(operator, opset)}
    return list(ReferenceEvaluator(base.proto_, new_ops=[*{**base.new_ops_, **ours}.values()]).run(None, dict(feeds)))


@cache
def _implementation(operator: str, opset: int) -> type[OpRun]:
    function = meaning(operator, opset)
    assert function is not None
    counts = "outputs" in inspect.signature(function).parameters

    def _run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        stated = {key: value for key, value in attributes.items() if value is not None}
        if counts:
            stated["outputs"] = len(self.onnx_node.output)
        made = function(*inputs, **stated)
        return made if isinstance(made, tuple) else (made,)

    return type(operator, (OpRun,), {"_run": _run, "op_schema": onnx.defs.get_schema(operator, opset, "")})
