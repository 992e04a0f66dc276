# SPDX-License-Identifier: Apache-2.0
"""Cast.

6: below, `to` is the name of the dtype; from 6 on its number in TensorProto.DataType.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.registry import downgrade, upgrade
from onnx_convert.site import dtype_name, dtype_number

if TYPE_CHECKING:
    from onnx_convert.emitter import Emitter
    from onnx_convert.site import Node, Value


@upgrade("Cast", at=6)
def name_to_number(node: Node, op: Emitter) -> Value:
    """"FLOAT" becomes 1."""
    return op.same(to=dtype_number(node.attr("to")))


@downgrade("Cast", at=6)
def number_to_name(node: Node, op: Emitter) -> Value:
    """1 becomes "FLOAT"."""
    return op.same(to=dtype_name(node.attr("to")).upper())
