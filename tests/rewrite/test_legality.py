# SPDX-License-Identifier: Apache-2.0
"""Legality: operators, inputs and dtypes that an opset does not have."""

from __future__ import annotations

import re

import onnx
import pytest
from texts import model

import onnx_convert
import onnx_convert.adapters
from onnx_convert import InvalidModelError, RefusedError


@pytest.mark.parametrize(
    ("node", "says"),
    [("y = NoSuchOperator (x)", "not an operator of ai.onnx at opset 12"),
     ("y = GridSample (x, x)", "not an operator of ai.onnx at opset 12")],
)  # fmt: skip
def test_an_operator_that_the_model_may_not_have_is_refused(node: str, says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        onnx_convert.convert(model(f"(float[1,1,2,2] x) => (float[1,1,2,2] y) {{ {node} }}", 12), to=13)


@pytest.mark.parametrize(("strict", "works"), [(False, True), (True, False)])
def test_a_dtype_that_cannot_be_known_is_assumed(strict: bool, works: bool) -> None:
    nodes = "a = com.acme.Thing (x) b = Where (c, a, a) y = com.acme.Thing (b)"
    graph = f"(bool[2] c, float[2] x) => (float[2] y) {{ {nodes} }}"
    source = model(graph, 16, com_acme=1)
    if works:
        assert len(onnx_convert.convert(source, to=15, strict=strict).report.assumed) >= 1
    else:
        with pytest.raises(RefusedError, match="not known"):
            onnx_convert.convert(source, to=15, strict=strict)


@pytest.mark.parametrize(
    ("node", "says"),
    [
        ("y = Softmax <axis = 1> (x, x)", "Softmax 'y' (2 inputs where opset 13 takes 1)"),
        ("y = Softmax <axis = 1> ()", "0 inputs where opset 13 takes 1"),
        ("y, z = Softmax <axis = 1> (x)", "2 outputs where opset 13 has 1"),
    ],
)
def test_no_input_gets_lost(node: str, says: str) -> None:
    source = model(f"(float[2,3,4] x) => (float[2,3,4] y) {{ {node} }}", 13)
    with pytest.raises(InvalidModelError, match=re.escape(says)):
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
