# SPDX-License-Identifier: Apache-2.0
"""The check of the result: what is wrong is found, and what was known is not lost."""

from __future__ import annotations

import weakref
from typing import Any

import onnx
import pytest
from onnx import ModelProto, helper
from texts import model

import onnx_convert
import onnx_convert.adapters
from onnx_convert import InvalidModelError, RefusedError
from onnx_convert.analysis.facts import Facts
from onnx_convert.planning import check
from oracle import all_nodes, validate


def test_what_inference_loses_behind_a_foreign_operator_is_written_down() -> None:
    """A rank that value_info told must still be known of the value."""
    source = model("(float[2,3] x) => (float y) { a = com.microsoft.Gelu (x) b = Softmax(a) y = ReduceSum(b) }", 12,
                   com_microsoft=1)  # fmt: skip
    source.graph.value_info.append(helper.make_tensor_value_info("a", 1, [2, 3]))
    converted = onnx_convert.convert(source, to=13).model
    inferred = onnx.shape_inference.infer_shapes(converted)
    known = {value.name: len(value.type.tensor_type.shape.dim) for value in inferred.graph.value_info}
    assert known["b"] == 2


def test_what_is_stated_of_an_output_stays() -> None:
    """Inference refines it, and keeps what is stated of the same value elsewhere."""
    source = model("(float[2,3,4] x) => (float[K,L,M] y) <float[P,Q,R] y> { y = Softmax <axis = 1> (x) }", 12)
    converted = onnx_convert.convert(source, to=13).model
    assert converted.graph.output == source.graph.output
    assert converted.graph.value_info == source.graph.value_info


def test_what_inference_found_of_the_source_is_let_go_before_the_result_is_inferred(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of the two costs several times the model, and nodes that were rewritten are all that is compared."""
    held: list[weakref.ref[Facts]] = []
    alive: list[bool] = []
    make, judge = Facts.__init__, check.judge

    def made(facts: Facts, *given: Any) -> None:
        make(facts, *given)
        held.append(weakref.ref(facts))

    def judged(*given: Any) -> Any:
        alive.extend(reference() is not None and reference().asked for reference in held)
        return judge(*given)

    monkeypatch.setattr(Facts, "__init__", made)
    monkeypatch.setattr(check, "judge", judged)
    source = model("(float[2,3,4] x) => (float[2,3,4] z) { y = Relu (x) z = Softmax <axis = 1> (y) }", 12)
    assert onnx_convert.convert(source, to=13).changed
    assert alive and not any(alive)


def _model(graph: str, opset: int) -> ModelProto:
    made = onnx.parser.parse_graph(f"g {graph}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(made, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


# ---- integers that inference takes for a shape, from opset 14 on


def test_column_less_a_row() -> None:
    graph = """(int64[4] i, int64[3] j, float[3] x) => (int64[4,3] d, float[1] y) <int64[1] a = {1}>
        { c = Unsqueeze(i, a) d = Sub(c, j) y = ReduceMean<axes=[0]>(x) }"""
    converted = onnx_convert.convert(_model(graph, 13), to=21).model
    validate(converted)
    assert [node.op_type for node in all_nodes(converted)] == ["Unsqueeze", "Sub", "ReduceMean"]


@pytest.mark.parametrize(
    ("graph", "start", "stop"),
    [
        ("(float[4] x) => (float[4] y) { y = Trilu (x) }", 17, 13),
        ("(float[4] x) => (float[2] y, float[2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }", 18, 13),
        ("(float[4] x) => (float[k] y) <int64[1] k = {2}> { y, i = TopK <axis = 1> (x, k) }", 17, 9),
        ("(float[4] x, int64[1] i) => (float[1] y) { y = Gather <axis = -3> (x, i) }", 13, 10),
    ],
)
def test_what_an_adapter_stumbles_over(graph: str, start: int, stop: int) -> None:
    """Where the model is not valid, that is what is said, and not that we have a bug."""
    with pytest.raises((InvalidModelError, RefusedError), match=r"check|not valid|axis"):
        onnx_convert.convert(model(graph, start), to=stop)
