# SPDX-License-Identifier: Apache-2.0
"""Products with matrices of each row's own choice, as a mixture of experts takes them.

29: GroupedMatMul.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@downgrade("GroupedMatMul", at=29)
def gather_and_multiply(node: Node, op: Emitter) -> Value:  # unreached: of a newer onnx than may be installed
    """The chosen matrices are gathered, row by row, and each is multiplied by its row; so are the biases added."""
    op.equivalent("the operator may round in another order")
    rows, weights, chosen = node.input(0), node.input(1), node.input(2)
    each = op.Unsqueeze(rows, op.const([1, 2]))  # [M, 1, 1, K] by [M, S, K, N]
    product = op.Squeeze(op.MatMul(each, op.Gather(weights, chosen, axis=0)), op.const([2]))
    bias = node.optional_input(3)
    return product if bias is None else op.Add(product, op.Gather(bias, chosen, axis=0))
