# SPDX-License-Identifier: Apache-2.0
"""Cast, CastLike.

6: below, `to` is the name of the dtype; from 6 on its number in TensorProto.DataType.
9: Cast takes and makes strings, as other operators take dtypes that are new.
15: CastLike is there.
19: `saturate` tells what becomes of numbers beyond float8.
24: `round_mode` tells how numbers are rounded to float8e8m0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_convert.adapter import downgrade, dtype_name, dtype_number, upgrade

if TYPE_CHECKING:
    from onnx_convert.adapter import Emitter, Node, Value


@upgrade("Cast", at=6)
def name_to_number(node: Node, op: Emitter) -> Value:
    """The name FLOAT becomes 1."""
    return op.same(to=dtype_number(node.attr("to")))


@downgrade("Cast", at=6)
def number_to_name(node: Node, op: Emitter) -> Value:
    """The number 1 becomes FLOAT."""
    return op.same(to=dtype_name(node.attr("to")).upper())


@downgrade("CastLike", at=15)
def cast_to_known_dtype(node: Node, op: Emitter) -> Value:
    """The dtype of the other value is written down."""
    like = node.input(1)
    if like.dtype is None:
        node.refuse(
            f"the dtype of {like.name!r} is not known, and Cast has to name it",
            f"state the type of {like.name!r} in value_info, or run shape inference on the model first",
            unknown=True,
        )
    return op.same(node.input(0), operator="Cast", to=like.dtype)


@downgrade("Cast", "CastLike", at=19)
def forget_saturation(node: Node, op: Emitter) -> Value:
    """The attribute concerns float8 only, which is not there below."""
    return op.same(drop=("saturate",))


@downgrade("Cast", "CastLike", at=24)
def forget_rounding(node: Node, op: Emitter) -> Value:
    """The attribute concerns float8e8m0 only, which is not there below."""
    return op.same(drop=("round_mode",))
