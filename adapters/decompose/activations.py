# SPDX-License-Identifier: Apache-2.0
"""Activations.

9: Erf and Shrink are there.      10: ThresholdedRelu.     12: Celu, of floats only.     14: HardSwish.     18: Mish.
20: Gelu.     24: Swish.          28: SwiGLU; Celu of other floats too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.adapter import downgrade, dtype_name, impossible
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT
from onnx_convert.adapters.lib.script import Compiled

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

ORDER: Final = "the operator may round in another order"

compiled: Final = Compiled("activations")

impossible(
    "Erf",
    at=9,
    direction="down",
    reason="nothing below opset 9 makes the error function but approximations",
    remedy="go no lower than opset 9",
)


# ---- products with a sigmoid


@downgrade("SwiGLU", at=28)
def multiply_swish(node: Node, op: Emitter) -> Value:
    """Swish of the gate times the other input."""
    op.equivalent(ORDER)
    return op.Mul(op.same(node.input(0), operator="Swish"), node.input(1))


@downgrade("Swish", at=24)
def multiply_sigmoid(node: Node, op: Emitter) -> Value:
    """A product with Sigmoid(alpha * x)."""
    x, alpha = node.input(0), node.attr("alpha")
    op.equivalent(ORDER)
    return op.Mul(x, op.Sigmoid(x if alpha == 1 else op.Mul(x, op.const(alpha, node.dtype(0)))))


@downgrade("HardSwish", at=14)
def multiply_hard_sigmoid(node: Node, op: Emitter) -> Value:
    """A product with HardSigmoid(x) whose alpha is 1/6 and beta 0.5."""
    op.equivalent(ORDER)
    return op.call(compiled.hard_swish, node.input(0))


# ---- Gelu, Mish, Celu


@downgrade("Gelu", at=20)
def gelu_by_erf(node: Node, op: Emitter) -> Value:
    """Half of x times 1 + Erf(x / sqrt(2)), or times the Tanh form that `approximate` asks for."""
    op.equivalent(ORDER)
    return op.call(compiled.gelu_by_tanh if node.attr("approximate") == "tanh" else compiled.gelu, node.input(0))


@downgrade("Mish", at=18)
def mish_by_softplus(node: Node, op: Emitter) -> Value:
    """A product with Tanh(Softplus(x))."""
    op.equivalent(ORDER)
    return op.call(compiled.mish, node.input(0))


@downgrade("Celu", at=28)
def celu_of_other_floats(node: Node, op: Emitter) -> Value:
    """A float may stay."""
    return op.same() if node.input(0).dtype in (FLOAT, None) else celu_by_elu(node, op)


@downgrade("Celu", at=12)
def celu_by_elu(node: Node, op: Emitter) -> Value:
    """Relu(x) + alpha * Elu(x / alpha) of what is below 0; just Elu where alpha is 1."""
    x, alpha = node.input(0), node.attr("alpha")
    if alpha == 1:
        return op.Elu(x, alpha=1.0)
    if alpha <= 0:
        node.refuse(f"alpha is {alpha}, where the text of Celu and its function differ", "give it an alpha above 0")
    op.equivalent(ORDER)
    dtype = x.dtype or FLOAT
    below = op.Div(op.Relu(op.Neg(x)), op.const(-alpha, dtype))
    return op.Add(op.Relu(x), op.Mul(op.Elu(below, alpha=1.0), op.const(alpha, dtype)))


# ---- what chooses by comparing


@downgrade("ThresholdedRelu", at=10)
def choose_above_threshold(node: Node, op: Emitter) -> Value:
    """The input where it is greater than alpha, else 0."""
    return op.call(compiled.thresholded_relu, node.input(0), alpha=node.attr("alpha"))


@downgrade("Shrink", at=9)
def shrink_by_choice(node: Node, op: Emitter) -> Value:
    """Plus bias below -lambd, minus bias above lambd, else 0. Integers are computed as floats, as runtimes do."""
    x, dtype = node.input(0), node.dtype(0)
    name = dtype_name(dtype)
    if "int" not in name:
        return _shrunk(node, op, x, dtype)
    if name.endswith("64"):
        op.conditional("every integer is at most 2**53 in magnitude")
    wide = FLOAT if name.endswith(("8", "16")) else DOUBLE
    return op.Cast(_shrunk(node, op, op.Cast(x, to=wide), wide), to=dtype)


def _shrunk(node: Node, op: Emitter, x: Value, dtype: int) -> Value:
    """Writes the node at opset 9, where Where is."""
    bias, border, zero = node.attr("bias"), node.attr("lambd"), op.const(0, dtype)
    if bias == 0 and border >= 0:
        return op.at(9).Where(op.Greater(op.Abs(x), op.const(border, dtype)), x, zero)
    added = op.const(bias, dtype)
    above = op.at(9).Where(op.Greater(x, op.const(border, dtype)), op.Sub(x, added), zero)
    return op.at(9).Where(op.Less(x, op.const(-border, dtype)), op.Add(x, added), above)
