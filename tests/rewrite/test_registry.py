# SPDX-License-Identifier: Apache-2.0
"""The registry: a crossing that nobody decided is refused."""

from __future__ import annotations

import pytest
from onnx import ModelProto
from texts import model

import onnx_convert
import onnx_convert.adapters
from onnx_convert import RefusedError
from onnx_convert.rewrite import registry
from onnx_convert.spec import opsets

DOWN, UP = opsets.DOWN, opsets.UP


# ---- refusals


@pytest.mark.usefixtures("undecided")
def test_what_is_not_decided_is_refused() -> None:
    source = model("(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }", 12)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=17)
    (refusal,) = caught.value.refusals
    assert (refusal.operator, refusal.node, refusal.boundary, refusal.direction) == ("Softmax", "y", 13, UP)
    assert "not decided" in refusal.reason


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
