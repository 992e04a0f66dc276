# SPDX-License-Identifier: Apache-2.0
"""Unary operators: Abs, Ceil, Elu, Erf, Exp, Floor, HardSigmoid, LeakyRelu, Log, Neg, Reciprocal, Relu, Selu, Sigmoid,
Sqrt, Tanh.

6: `consumed_inputs`, a hint about memory, is gone; the defaults of `alpha` and `gamma` of Selu got more digits.
13: Erf takes integers no longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, upgrade
from onnx_convert.adapters.lib.dtypes import DOUBLE, is_integer

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@upgrade(
    "Abs", "Ceil", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Neg", "Reciprocal", "Relu", "Sigmoid",
    "Sqrt", "Tanh",
    at=6,
)  # fmt: skip
def forget_memory_hint(node: Node, op: Emitter) -> Value:
    """`consumed_inputs` never changed a number."""
    return op.same(drop=("consumed_inputs",))


@upgrade("Selu", at=6)
@downgrade("Selu", at=6)
def spell_out_defaults(node: Node, op: Emitter) -> Value:
    """Writes what is absent as the default that it meant."""
    absent = {name: node.attr(name) for name in ("alpha", "gamma") if not node.has(name)}
    return op.same(drop=("consumed_inputs",), **absent)


@upgrade("Erf", at=13)
def integers_through_double(node: Node, op: Emitter) -> Value:
    """An integer is cast to double, and the result back."""
    x = node.input(0)
    if x.dtype is None or not is_integer(x.dtype):
        return op.same()
    op.equivalent("how a result between integers is rounded is not specified")
    return op.Cast(op.same(op.Cast(x, to=DOUBLE)), to=x.dtype)
