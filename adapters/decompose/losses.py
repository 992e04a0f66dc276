# SPDX-License-Identifier: Apache-2.0
"""SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss.

12: the operators are there. What `ignore_index` names counts for nothing, may be no class at all, and does not weigh in
the mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import largest, lowest

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_LABELS, _WEIGHTS = 1, 2
_CLASSES: Final = 1  # the axis


@downgrade("SoftmaxCrossEntropyLoss", at=12)
def lose_by_log_softmax(node: Node, op: Emitter) -> tuple[Value, Value]:
    """The negative log likelihood of what LogSoftmax gives."""
    op.equivalent("LogSoftmax is an operator of its own")
    likelihoods = op.at(13).LogSoftmax(node.input(0), axis=_CLASSES)
    return _loss(node, op, likelihoods), likelihoods


@downgrade("NegativeLogLikelihoodLoss", at=12)
def lose_by_label(node: Node, op: Emitter) -> Value:
    """The element that each label names, weighed, and reduced."""
    if node.attr("reduction") != "none":
        op.equivalent("the losses may be summed in another order")
    return _loss(node, op, node.input(0))


def _loss(node: Node, op: Emitter, likelihoods: Value) -> Value:
    dtype, labels, ignored = node.dtype(0), node.input(_LABELS), _ignored(node, op)
    if ignored is not None:
        labels = op.Where(ignored, op.const(0, node.dtype(_LABELS)), labels)
    column = op.Unsqueeze(labels, axes=[_CLASSES])
    loss = op.Neg(op.Squeeze(op.GatherElements(likelihoods, column, axis=_CLASSES), axes=[_CLASSES]))
    weights, table = None, node.optional_input(_WEIGHTS)
    if table is not None:
        weights = op.Gather(table, labels, axis=0)
        loss = op.Mul(loss, weights)
    if ignored is not None:
        nothing = op.const(0, dtype)
        weights = op.Cast(op.Not(ignored), to=dtype) if weights is None else op.Where(ignored, nothing, weights)
        loss = op.Where(ignored, nothing, loss)
    return _reduced(node, op, loss, weights)


def _ignored(node: Node, op: Emitter) -> Value | None:
    """Returns which labels are to be ignored; None if none is, as where their dtype has no such number."""
    if not node.has("ignore_index"):
        return None
    number, kind = node.attr("ignore_index"), node.dtype(_LABELS)
    return op.Equal(node.input(_LABELS), op.const(number, kind)) if lowest(kind) <= number <= largest(kind) else None


def _reduced(node: Node, op: Emitter, loss: Value, weights: Value | None) -> Value:
    reduction = node.attr("reduction")
    if reduction == "none":
        return loss
    if reduction == "mean" and weights is None:
        return op.ReduceMean(loss, keepdims=0)
    total = op.ReduceSum(loss, keepdims=0)
    return total if reduction == "sum" or weights is None else op.Div(total, op.ReduceSum(weights, keepdims=0))
