# SPDX-License-Identifier: Apache-2.0
"""The one door for adapters: all that they import of this package besides `onnx_convert.adapters.lib`.

An adapter is a function that is registered with `upgrade` or `downgrade`; it asks its `Node` and writes with its
`Emitter`. `compatible` and `impossible` decide a boundary without a function, and `promotable` says how an operator
treats the values that it is given in a wider dtype.
"""

from __future__ import annotations

from onnx_convert.model.tensors import tensor_of
from onnx_convert.rewrite.emitter import At, Emitter, Outcome
from onnx_convert.rewrite.node import LARGEST, Dim, Node, Refuse, Shape, Value
from onnx_convert.rewrite.promotion import ARITHMETIC, EXTREMUM, MOVEMENT, NONE, ORDER
from onnx_convert.rewrite.registry import compatible, downgrade, impossible, promotable, upgrade
from onnx_convert.spec.opsets import AI_ONNX_ML, canonical_domain
from onnx_convert.spec.types import dtype_name, dtype_number, size

__all__ = [
    "AI_ONNX_ML",
    "ARITHMETIC",
    "EXTREMUM",
    "LARGEST",
    "MOVEMENT",
    "NONE",
    "ORDER",
    "At",
    "Dim",
    "Emitter",
    "Node",
    "Outcome",
    "Refuse",
    "Shape",
    "Value",
    "canonical_domain",
    "compatible",
    "downgrade",
    "dtype_name",
    "dtype_number",
    "impossible",
    "promotable",
    "size",
    "tensor_of",
    "upgrade",
]
