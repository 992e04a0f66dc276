# SPDX-License-Identifier: Apache-2.0
"""Adapters for an operator set of one's own: com.acme, whose operator Gate changed in its version 2.

Gate(x) is x * sigmoid(alpha * x). In version 1 there was no `alpha`, it was 1; version 2 brought the attribute, with
1.702 as its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxscript import FLOAT, script
from onnxscript import opset18 as ops

from onnx_convert import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert import Emitter, Node, Value

DOMAIN = "com.acme"
DEFAULT = 1.702  # onnx knows no schema of this domain, so an adapter knows the defaults


@script()
def gate(x: FLOAT[...], alpha: float) -> FLOAT[...]:
    """Gate-2 by operators of ai.onnx. The opset is the author's choice: the nodes are carried on to the model's."""
    return ops.Mul(x, ops.Sigmoid(ops.Mul(ops.Constant(value_float=alpha), x)))


@upgrade("Gate", at=2, domain=DOMAIN)
def spell_out_alpha(node: Node, op: Emitter) -> Value:
    """What version 1 implied is an attribute in version 2."""
    return op.same(alpha=1.0)


@downgrade("Gate", at=2, domain=DOMAIN)
def drop_alpha_or_decompose(node: Node, op: Emitter) -> Value:
    """1 is what version 1 implies; for any other `alpha` version 1 has no operator, and ai.onnx takes over."""
    alpha = node.attr("alpha", DEFAULT)
    if alpha == 1:
        return op.same(drop=["alpha"])
    op.equivalent("a fused kernel of Gate may round otherwise")
    return op.call(gate, node.input(0), alpha=alpha)
