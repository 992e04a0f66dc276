# SPDX-License-Identifier: Apache-2.0
"""Functions: converted where they stand, or at their calls if only those know enough."""

from __future__ import annotations

import onnx
import pytest
from made_up import OWN
from onnx import ModelProto
from texts import assert_same_numbers, function, model, operators

import onnx_convert
import onnx_convert.adapters
from onnx_convert import RefusedError

# ---- where nodes stand

UNSQUEEZE = "Unsqueeze <axes = [0]>"


# ---- functions


CALL = "(float[2] x) => (float[1,2] y) { y = f.F (x) }"


def body_of(model: ModelProto, name: str = "F") -> onnx.FunctionProto:
    (found,) = [function for function in model.functions if function.name == name]
    return found


@pytest.mark.parametrize(
    ("written_for", "start", "stop", "inputs"),
    [
        (12, 12, 13, 2),  # at the model's opset
        (11, 12, 13, 2),  # older than the model
        (13, 12, 13, 2),  # at the target already
        (17, 13, 15, 2),  # newer than the model and the target
        (12, 15, 15, 2),  # the model is at the target already, the function is not
        (12, 13, 17, 2),
    ],
)
def test_a_function_is_converted_where_it_stands(written_for: int, start: int, stop: int, inputs: int) -> None:
    node = f"y = {UNSQUEEZE} (x)"
    if written_for >= 13:
        node = "axes = Constant <value_ints = [0]> () y = Unsqueeze (x, axes)"
    source = model(CALL, start, function(node, written_for), ir=8, f=1)
    converted = onnx_convert.convert(source, to=stop, keep_functions=True)
    body = body_of(converted.model)
    assert [len(node.input) for node in body.node if node.op_type == "Unsqueeze"] == [inputs]
    assert {entry.version for entry in body.opset_import if not entry.domain} == {stop}
    assert converted.model.graph.node[0] == source.graph.node[0]
    assert_same_numbers(source, converted.model)


def test_a_function_that_stays_keeps_its_constants_in_its_body() -> None:
    source = model(CALL, 12, function(f"y = {UNSQUEEZE} (x)"), ir=8, f=1)
    converted = onnx_convert.convert(source, to=13).model
    assert not converted.graph.initializer
    assert [node.op_type for node in body_of(converted).node] == ["Constant", "Unsqueeze"]


def test_a_reference_to_an_attribute_stays_one_where_a_constant_can_hold_it() -> None:
    source = model(
        "(float[2] x) => (float[1,2] y, float[2,1] z) { y = f.F <axes = [0]> (x) z = f.F <axes = [1]> (x) }",
        12,
        function("y = Unsqueeze <axes: ints = @axes> (x)", attributes="<axes>"),
        ir=8,
        f=1,
    )
    converted = onnx_convert.convert(source, to=13)
    constant, unsqueeze = body_of(converted.model).node
    assert constant.attribute[0].ref_attr_name == "axes"
    assert unsqueeze.input[1] == constant.output[0]
    assert not converted.report.inlined
    assert_same_numbers(source, converted.model)


def test_a_reference_where_a_fact_is_needed_is_resolved_at_the_calls() -> None:
    source = model(
        "(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) { y = f.F <axis = 1> (x) z = f.F <axis = 2> (x) }",
        12,
        function("y = Softmax <axis: int = @axis> (x)", attributes="<axis>"),
        ir=8,
        f=1,
    )
    converted = onnx_convert.convert(source, to=13)
    assert converted.report.inlined == ["f.F"]
    assert not converted.model.functions
    assert operators(converted.model).count("Softmax") == 2
    assert_same_numbers(source, converted.model)


def test_a_default_of_an_attribute_is_used_where_the_call_leaves_it_out() -> None:
    source = model(
        "(float[2,3,4] x) => (float[2,3,4] y) { y = f.F (x) }",
        12,
        function("y = Softmax <axis: int = @axis> (x)", attributes="<axis: int = 1>"),
        ir=9,
        f=1,
    )
    converted = onnx_convert.convert(source, to=13)
    assert_same_numbers(source, converted.model)


def test_a_function_that_nobody_calls_is_converted_too() -> None:
    graph = "(float[2] x) => (float[2] y) { y = Neg (x) }"
    source = model(graph, 12, function(f"y = {UNSQUEEZE} (x)"), ir=8, f=1)
    converted = onnx_convert.convert(source, to=13).model
    assert len(body_of(converted).node[-1].input) == 2


def test_a_function_named_like_an_operator_is_the_function() -> None:
    """A model-local function goes before an operator of the same domain and name."""
    source = model(
        "(float[2] x) => (float[2] y) { y = org.engine.Stuck (x) }",
        17,
        '<domain: "org.engine", opset_import: ["" : 17]> Stuck (x) => (y) { y = Neg (x) }',
        org_engine=1,
    )
    converted = onnx_convert.convert(source, to={OWN: 2}).model
    assert list(converted.graph.node) == list(source.graph.node)


def test_functions_that_are_to_be_kept_are_not_expanded() -> None:
    body = '<domain: "f", opset_import: ["" : 18]> F <ax: int = 2> (x) => (y) { y = Softmax <axis: int = @ax> (x) }'
    source = model("(float[2,3,4] x) => (float[2,3,4] y) { y = f.F <ax = 1> (x) }", 18, body, ir=9, f=1)
    assert onnx_convert.convert(source, to=12).report.inlined == ["f.F"]
    with pytest.raises(RefusedError, match="reference to the function's attribute ax"):
        onnx_convert.convert(source, to=12, keep_functions=True)
