# SPDX-License-Identifier: Apache-2.0
"""The conversion as a pass of onnx_ir."""

from __future__ import annotations

import onnx
import onnx_ir
import pytest
from onnx_ir.passes import PassError, Sequential
from texts import model

from onnx_convert import RefusedError
from onnx_convert.ir_passes import ConvertOpsetPass

SOFTMAX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }"
JOIN = "(string[4] x) => (string[4] y) { y = StringConcat (x, x) }"  # there is none below 20


def ir(text: str, opset: int) -> onnx_ir.Model:
    return onnx_ir.from_proto(model(text, opset))


def test_the_very_model_is_converted() -> None:
    source = ir(SOFTMAX, 13)
    source.metadata_props["author"] = "somebody"
    convert = ConvertOpsetPass(to=12)
    result = Sequential(convert)(source)
    assert result.model is source and result.modified
    assert [node.op_type for node in source.graph] == ["Transpose", "Softmax", "Transpose"]
    assert source.opset_imports == {"": 12} and source.metadata_props == {"author": "somebody"}
    assert convert.report is not None and convert.report.nodes_changed == 1
    onnx.checker.check_model(onnx_ir.to_proto(source))


def test_a_model_that_is_there_already_is_not_modified() -> None:
    assert not ConvertOpsetPass(to=13)(ir(SOFTMAX, 13)).modified


def test_functions_and_the_ir_version_follow() -> None:
    text = '<domain: "f", opset_import: ["": 13]> Twice (x) => (y) { y = Add (x, x) }'
    source = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]> g (float[2] x) => (float[2] y) { y = f.Twice (x) }\n' + text
    )
    converted = onnx_ir.from_proto(source)
    ConvertOpsetPass(to=21)(converted)
    assert [function.opset_imports[""] for function in converted.functions.values()] == [21]
    assert converted.ir_version == 10
    ConvertOpsetPass(to=9)(converted)
    assert not converted.functions and [node.op_type for node in converted.graph] == ["Add"]


def test_a_refusal_is_the_cause_and_leaves_the_model() -> None:
    source = ir(JOIN, 20)
    before = onnx_ir.to_proto(source).SerializeToString(deterministic=True)
    with pytest.raises(PassError) as caught:
        Sequential(ConvertOpsetPass(to=13))(source)
    assert isinstance(caught.value.__cause__, RefusedError)
    assert onnx_ir.to_proto(source).SerializeToString(deterministic=True) == before
