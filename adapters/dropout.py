# SPDX-License-Identifier: Apache-2.0
"""Dropout.

6: below, there is `consumed_inputs`, a hint about memory.
7: `is_test` goes, whose absence meant training: a random Dropout.
10: the mask is boolean; below, it has the dtype of the data.
12: `ratio` is an input, and `training_mode` another one; without it, nothing is dropped and the mask is all true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import BOOL, FLOAT

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_MASK = 1
_RATIO, _TRAINING = 1, 2


@upgrade("Dropout", at=6)
def forget_memory_hint(node: Node, op: Emitter) -> Value:
    """`consumed_inputs` never changed a number."""
    return op.same(drop=("consumed_inputs",))


@upgrade("Dropout", at=7)
def forget_is_test(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """`is_test` is dropped. Where it is 0, the node is random: 12 is the next opset that says so."""
    if node.attr("is_test"):
        return op.same(drop=("is_test",))
    ratio, training = op.const(node.attr("ratio"), FLOAT), op.const(True, BOOL)
    y, mask = op.node("Dropout", node.input(0), ratio, training, outputs=2, at=12)
    return y, op.Cast(mask, to=node.dtype(0)) if node.uses_output(_MASK) else None


@downgrade("Dropout", at=7)
def tell_inference(node: Node, op: Emitter) -> Value:
    """`is_test` is set."""
    return op.same(is_test=1)


@upgrade("Dropout", at=10)
def cast_boolean_mask(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """The mask is cast to the dtype that its readers expect."""
    if not node.uses_output(_MASK):
        return op.same()
    y, mask = op.sames()
    return y, op.Cast(mask, to=node.dtype(0))


@downgrade("Dropout", at=10)
def cast_mask_to_boolean(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """The mask is cast to boolean."""
    if not node.uses_output(_MASK):
        return op.same()
    y, mask = op.sames()
    return y, op.Cast(mask, to=BOOL)


@upgrade("Dropout", at=12)
def ratio_to_input(node: Node, op: Emitter) -> Value:
    """`ratio` becomes a constant; without `training_mode`, nothing is dropped, and the mask is all true."""
    if node.uses_output(_MASK):
        op.equivalent("what the mask is below 12, where nothing is dropped, is not specified, and runtimes differ")
    if not node.has("ratio"):
        return op.same()
    if node.refers("ratio"):
        ratio = op.Constant(value_float=node.attribute("ratio"))
    else:
        ratio = op.const(node.attr("ratio"), FLOAT)
    return op.same(node.input(0), ratio, drop=("ratio",))


@downgrade("Dropout", at=12)
def ratio_to_attribute(node: Node, op: Emitter) -> Value | tuple[Value | None, ...]:
    """A constant ratio becomes an attribute, and a mask that is all true is made so. Training is written out, unless it
    drops nothing either."""
    x, ratio, training = node.input(0), node.optional_input(_RATIO), node.optional_input(_TRAINING)
    known = float(ratio.constant.item()) if ratio is not None and ratio.constant is not None else None
    if known != 0 and training is not None and (training.constant is None or training.constant.any()):
        return _random(node, op, None if training.constant is not None else training)
    y = op.same(x, drop=("seed",), ratio=known, outputs=1)
    # A Dropout below 12 need not make it so.
    mask = op.at(8).Expand(op.const(True, BOOL), op.Shape(x)) if node.uses_output(_MASK) else None
    return y, mask


def _random(node: Node, op: Emitter, training: Value | None) -> tuple[Value | None, ...]:
    """Keeps and scales up the data where uniform numbers reach the ratio. Without training the ratio counts as 0."""
    op.conditional("in training only the distribution of the mask matters, not its very numbers")
    x, given, dtype = node.input(0), node.optional_input(_RATIO), node.dtype(0)
    ratio = op.const(0.5, FLOAT) if given is None else given if given.dtype == FLOAT else op.Cast(given, to=FLOAT)
    if training is not None:
        ratio = op.at(7).Mul(ratio, op.Cast(training, to=FLOAT))
    seed = node.attr("seed")
    uniform = op.RandomUniformLike(x, dtype=FLOAT, seed=float(seed) if seed is not None else None)
    mask = op.Not(op.at(7).Less(uniform, ratio))
    scale = op.Reciprocal(op.at(7).Sub(op.const(1, FLOAT), ratio))
    kept = op.at(7).Mul(x, op.Cast(mask, to=dtype))
    y = op.at(7).Mul(kept, scale if dtype == FLOAT else op.Cast(scale, to=dtype))
    return y, mask if node.uses_output(_MASK) else None
