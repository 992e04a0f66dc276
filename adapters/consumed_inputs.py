# SPDX-License-Identifier: Apache-2.0
"""The operators that opset 6 frees from `consumed_inputs`, a hint about memory that they shared.

6: the attribute is gone. With it changed
- Clip: without `min` and `max` nothing was clipped; from 6 on the largest finite floats are the default;
- Selu: the defaults of `alpha` and `gamma` got more digits;
- BatchNormalization: below, the attribute is required, a flag for each of five inputs;
- BatchNormalization, InstanceNormalization: below, the input has four dimensions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.adapter import downgrade, upgrade

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value

_HINT: Final = ("consumed_inputs",)


@upgrade(
    "Abs", "BatchNormalization", "Ceil", "Dropout", "Elu", "Exp", "Floor", "HardSigmoid", "InstanceNormalization",
    "LeakyRelu", "Log", "Neg", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Tanh",
    at=6,
)  # fmt: skip
def forget_consumed_inputs(node: Node, op: Emitter) -> Value:
    """The hint is dropped."""
    return op.same(drop=_HINT)


@upgrade("Clip", at=6)
def spell_out_no_bound(node: Node, op: Emitter) -> Value:
    """A bound that is absent is an infinity; without any, nothing is clipped."""
    if not node.has("min") and not node.has("max"):
        return op.Identity(node.input(0))
    absent: dict[str, Any] = {
        name: bound for name, bound in (("min", -math.inf), ("max", math.inf)) if not node.has(name)
    }
    return op.same(drop=_HINT, **absent)


@upgrade("Selu", at=6)
@downgrade("Selu", "Clip", at=6)
def spell_out_defaults(node: Node, op: Emitter) -> Value:
    """What is absent is written as the default that it meant."""
    names = ("min", "max") if node.operator == "Clip" else ("alpha", "gamma")
    return op.same(drop=_HINT, **{name: node.attr(name) for name in names if not node.has(name)})


@downgrade("BatchNormalization", at=6)
def consume_running_statistics(node: Node, op: Emitter) -> Value:
    """Training updates the mean and the variance in place, inference nothing."""
    _need_four_dimensions(node)
    flags = [0, 0, 0, 0, 0] if node.attr("is_test") else [0, 0, 0, 1, 1]
    return op.same(consumed_inputs=flags)


@downgrade("InstanceNormalization", at=6)
def keep_four_dimensions(node: Node, op: Emitter) -> Value:
    """Nothing changes for an input of four dimensions, the only one that was meant."""
    _need_four_dimensions(node)
    return op.same()


def _need_four_dimensions(node: Node) -> None:
    rank = node.input(0).rank
    if rank not in (None, 4):
        node.refuse(
            f"below opset 6 the input has four dimensions, and this one has {rank}",
            "go no lower than opset 6, or reshape the input to four dimensions",
        )
