# SPDX-License-Identifier: Apache-2.0
"""Finds fault with a source that only shows once the numbers in it are computed: sizes that Shape, Div and Concat make
of others are no secret to a conversion, which writes them down, and then onnx's inference sees more in the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import onnx.numpy_helper
from onnx import ModelProto, TensorProto, helper

from onnx_convert.analysis import claims, folding, settling, view
from onnx_convert.analysis.facts import Facts
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from onnx_convert.model.source import SourceModel

_ROUNDS: Final = 12  # each makes known what Shape of a value says that was reshaped in the one before
_ELEMENTS: Final = 64
_INTEGERS: Final = (TensorProto.INT64, TensorProto.INT32)


def with_numbers(source: SourceModel) -> ModelProto | None:
    """Returns a view of a source with constants in place of the nodes of its main graph that compute short lists of
    integers, without what it states of its values; None if there are none."""
    model = ModelProto.FromString(claims.without(view.of_source(source).serialised()))
    changed = False
    for _ in range(_ROUNDS):
        if not _compute(model):
            break
        changed = True
    return model if changed else None


def _compute(model: ModelProto) -> bool:
    """Puts constants in place of nodes, and tells whether there were any."""
    inferred = settling.settle(model, None, claims.leniently).graph
    facts, imports = Facts(lambda: inferred), {entry.domain: entry.version for entry in model.opset_import}
    overridable = {value.name for value in model.graph.input} if model.ir_version > opsets.INPUTS_ONLY else set()
    known: dict[str, Any] = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.name not in overridable and tensor.data_type in _INTEGERS
    }
    changed = False
    for node in model.graph.node:
        array = folding.fold(node, known.get, facts.type_of, imports) if node.op_type != "Constant" else _value(node)
        if array is None or not node.output or array.dtype.name not in ("int64", "int32", "bool"):
            continue
        known[node.output[0]] = array
        if node.op_type != "Constant" and array.size <= _ELEMENTS and imports.get("", 0) >= 9:
            tensor = onnx.numpy_helper.from_array(array)
            node.CopyFrom(helper.make_node("Constant", [], list(node.output), node.name, value=tensor))
            changed = True
    return changed


def _value(node: onnx.NodeProto) -> Any:
    found = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
    return onnx.numpy_helper.to_array(found) if found is not None and found.data_type in _INTEGERS else None
