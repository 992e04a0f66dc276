# SPDX-License-Identifier: Apache-2.0
"""Nodes: what an adapter may ask, and what is said where the answer is not known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, helper
from texts import model

import onnx_convert
import onnx_convert.adapters
from onnx_convert import InvalidModelError, RefusedError
from oracle import all_nodes, compare, evaluate, validate


def _model(graph: str, opset: int) -> ModelProto:
    made = onnx.parser.parse_graph(f"g {graph}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(made, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


# ---- attributes of functions

CALLS = [
    # source, target, attributes of the function with their values, its node, its input and output
    (13, 11, {"n": [3, 2]}, "s = Constant<value_ints=@n>() y = Reshape(x, s)", "float[2,3]", "float[3,2]"),
    (12, 11, {"n": 1}, "s = Constant<value_int=@n>() y = Gather(x, s)", "float[2,3]", "float[3]"),
    (10, 13, {"n": [1, 0, 1, 0]}, "y = Pad<pads=@n>(x)", "float[2,3]", "float[4,3]"),
    (10, 11, {"n": [1, 0, 1, 0]}, "y = Pad<pads=@n>(x)", "float[2,3]", "float[4,3]"),
    (10, 13, {"n": 0.5}, "y = Clip<max=@n>(x)", "float[2,3]", "float[2,3]"),
    (19, 18, {"n": "wrap"}, "p = Constant<value_ints=[1,0,1,0]>() y = Pad<mode=@n>(x, p)", "float[2,3]", "float[4,3]"),
    (18, 13, {"n": 1}, "y, z = Split<axis=@n,num_outputs=2>(x)", "float[2,3]", "float[2,2]"),
    (15, 13, {"n": 1}, "y = Shape<start=@n>(x)", "float[2,3]", "int64[1]"),
    (11, 10, {"n": "CRD"}, "y = DepthToSpace<blocksize=2,mode=@n>(x)", "float[1,8,1,1]", "float[1,2,2,2]"),
]


@pytest.mark.parametrize(("source", "target", "attributes", "nodes", "x", "y"), CALLS)
def test_attribute_of_a_function(
    source: int, target: int, attributes: dict[str, object], nodes: str, x: str, y: str
) -> None:
    model = _model(f"({x} x) => ({y} y) {{ y = local.F(x) }}", source)
    body = onnx.parser.parse_graph(f"g (float[?] x) => (float[?] y) {{ {nodes} }}")
    opsets = [helper.make_opsetid("", source)]
    model.functions.append(helper.make_function("local", "F", ["x"], ["y"], body.node, opsets, list(attributes)))
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = max(model.ir_version, 8)
    model.graph.node[0].attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    feeds = {"x": np.linspace(-1, 1, int(np.prod(_sizes(x))), dtype=np.float32).reshape(_sizes(x))}
    result = onnx_convert.convert(model, to=target).model
    validate(result)
    assert any(node.op_type != "F" for node in all_nodes(result))
    expected, got = evaluate(model, feeds), evaluate(result, feeds)
    assert compare(expected.values, got.values) is None


def _sizes(spelled: str) -> list[int]:
    return [int(size) for size in spelled.partition("[")[2].rstrip("]").split(",")]


# ---- a dtype that nobody knows


def test_unknown_dtype_is_named() -> None:
    text = """<ir_version: 8, opset_import: ["" : 20, "com.acme" : 1]>
        g (float[2] x) => (float[2] y) { z = com.acme.Foo(x) w = Gelu(z) y = com.acme.Foo(w) }"""
    with pytest.raises(onnx_convert.RefusedError) as refused:
        onnx_convert.convert(onnx.parser.parse_model(text), to=14)
    (refusal,) = refused.value.refusals
    assert refusal.operator == "Gelu"
    assert "dtype of 'z' is not known" in refusal.reason
    assert "type of 'z'" in refusal.remedy


@pytest.mark.parametrize(
    ("node", "start", "stop"),
    [
        ("y = Softmax <axis = 9> (x)", 13, 12),
        ("y = LogSoftmax <axis = -4> (x)", 13, 12),
        ("y = Hardmax <axis = 3> (x)", 13, 6),
        ("y = Softmax <axis = 9> (x)", 12, 10),
        ("y = Softmax <axis = 9> (x)", 12, 13),
        ("y = Softmax <axis = -9> (x)", 12, 10),
        ("y = ReduceMax <axes = [-4]> (x)", 11, 10),
        ("y = Squeeze <axes = [-9]> (x)", 11, 10),
        ("y = Unsqueeze <axes = [-9]> (x)", 11, 10),
        ("y = LayerNormalization <axis = 5> (x, s)", 17, 16),
        ("y = DFT <axis = 7> (x)", 17, 16),
        ("y = CenterCropPad <axes = [7]> (x, i)", 18, 17),
        ("y = CumSum (x, j)", 11, 10),
        ("y = Slice (x, i, i, k)", 11, 10),
    ],
)
def test_an_axis_that_is_not_there(node: str, start: int, stop: int) -> None:
    constants = "int64[1] i = {1}, int64 j = {7}, int64[1] k = {-7}"
    source = model(f"(float[2,3,4] x, float[4] s) => (float y) <{constants}> {{ {node} }}", start)
    with pytest.raises((RefusedError, InvalidModelError), match=r"axis|axes|check"):
        onnx_convert.convert(source, to=stop)


def test_attributes_that_are_references_are_messages_of_the_function() -> None:
    """An attribute reference outside a function is kept, and not looked into."""
    source = model("(float[2] x) => (float[2] y) { y = Elu <alpha = 0.5> (x) }", 13)
    reference = AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="nowhere")
    source.graph.node[0].attribute[0].CopyFrom(reference)
    converted = onnx_convert.convert(source, to=15).model
    assert converted.graph.node[0] == source.graph.node[0]
