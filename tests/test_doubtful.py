# SPDX-License-Identifier: Apache-2.0
"""Models that say nothing certain: a conversion must not give them a meaning of its own."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, helper
from texts import model

import onnx_convert
from onnx_convert import InvalidModelError, RefusedError
from onnx_convert.rewrite import registry


def legacy(a: list[int | None] | None, b: list[int | None] | None, **attributes: int) -> ModelProto:
    """Add-6 with broadcast; a shape may be unknown, as a whole or in parts."""
    values = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("a", a), ("b", b), ("c", a))]
    node = helper.make_node("Add", ["a", "b"], ["c"], "add", broadcast=1, **attributes)
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3)


@pytest.mark.parametrize("a", [None, [3, 3, 3], [None, None, None]])
@pytest.mark.parametrize("b", [None, [3], [None]])
def test_an_axis_counted_from_the_end_is_none_before_opset_7(a: list[int | None] | None, b: list[int | None]) -> None:
    with pytest.raises(RefusedError, match="axis -3 is none"):
        onnx_convert.convert(legacy(a, b, axis=-3), to=14)


@pytest.mark.parametrize(
    ("a", "b", "axis", "says"),
    [
        ([2, 3], [4], None, r"B of shape \[4\] is no block of A's \[2, 3\] at its end"),
        ([2, 3], [3], 0, r"B of shape \[3\] is no block of A's \[2, 3\] at axis 0"),
        ([2, 3], [3, 4], 1, "no block"),
        ([None, 3], [4], None, r"\[\?, 3\]"),
        ([2], [3, 2], None, "no block"),
    ],
)
def test_what_is_no_block_is_not_stretched(a: list[int | None], b: list[int], axis: int | None, says: str) -> None:
    source = legacy(a, b, **({} if axis is None else {"axis": axis}))
    for to in (7, 14):
        with pytest.raises(RefusedError, match=says):
            onnx_convert.convert(source, to=to)


@pytest.mark.parametrize("b", [[3], [2, 1], [2, 3, 4], [None, 4]])
def test_without_broadcast_shapes_are_the_same(b: list[int | None]) -> None:
    source = legacy([2, 3], b)
    del source.graph.node[0].attribute[:]
    with pytest.raises(RefusedError, match=r"without broadcast A and B have one shape, not \[2, 3\] and \["):
        onnx_convert.convert(source, to=7)
    source = legacy([2, 3], [None, None])
    del source.graph.node[0].attribute[:]
    assert onnx_convert.convert(source, to=7).changed


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
    with pytest.raises((RefusedError, InvalidModelError), match=r"axis|check"):
        onnx_convert.convert(source, to=stop)


@pytest.mark.parametrize(
    ("node", "says"),
    [
        ("y = Softmax <axis = 1> (x, x)", "Softmax 'y': has 2 inputs, at opset 13 there are 1"),
        ("y = Softmax <axis = 1> ()", "has 0 inputs, at opset 13 there are 1"),
        ("y, z = Softmax <axis = 1> (x)", "has 2 outputs, at opset 13 there are 1"),
    ],
)
def test_no_input_gets_lost(node: str, says: str) -> None:
    source = model(f"(float[2,3,4] x) => (float[2,3,4] y) {{ {node} }}", 13)
    with pytest.raises(InvalidModelError, match=says):
        onnx_convert.convert(source, to=12)


def test_a_function_called_like_an_operator() -> None:
    text = '<domain: "", opset_import: ["" : 18]> Mish (x) => (y) { y = Relu (x) }'
    source = model("(float[2] x) => (float[2] y) { y = Mish (x) }", 18, text, ir=8)
    onnx.checker.check_model(source)
    for to in (17, 13):
        for keep in (True, False):
            with pytest.raises(RefusedError, match="a function of the model as well"):
                onnx_convert.convert(source, to=to, keep_functions=keep)
    assert not onnx_convert.convert(source, to=18).changed
    source.graph.node[0].domain = "ai.onnx"
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=22)
    assert caught.value.refusals[0].direction == "up"


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


def test_functions_that_are_to_be_kept_are_not_expanded() -> None:
    body = '<domain: "f", opset_import: ["" : 18]> F <ax: int = 2> (x) => (y) { y = Softmax <axis: int = @ax> (x) }'
    source = model("(float[2,3,4] x) => (float[2,3,4] y) { y = f.F <ax = 1> (x) }", 18, body, ir=9, f=1)
    assert onnx_convert.convert(source, to=12).report.inlined == ["f.F"]
    with pytest.raises(RefusedError, match="reference to the function's attribute ax"):
        onnx_convert.convert(source, to=12, keep_functions=True)


def _of_a_domain(operator: str) -> ModelProto:
    source = model(f"(float[2] x) => (float[2] y) {{ y = org.doubt.{operator} (x) }}", 17)
    source.opset_import.add(domain="org.doubt", version=2)
    return source


def test_an_operator_of_which_nobody_says_anything() -> None:
    registry.compatible("Known", at=2, domain="org.doubt")
    assert onnx_convert.convert(_of_a_domain("Known"), to={"org.doubt": 1}).changed
    source = _of_a_domain("BrandNew")
    with pytest.raises(RefusedError, match=r"between org.doubt 2 and 1 is not decided"):
        onnx_convert.convert(source, to={"org.doubt": 1})
    assert not onnx_convert.convert(source, to={"org.doubt": 2}).changed
