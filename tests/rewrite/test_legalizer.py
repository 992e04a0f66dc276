# SPDX-License-Identifier: Apache-2.0
"""The legalizer: the boundaries of a node are crossed one after the other, each by its adapter, whose promises are kept
and whose bugs are named."""

from __future__ import annotations

import pytest
from made_up import OWN, own, steps
from onnx import helper
from texts import model, opset_imports

import onnx_convert
import onnx_convert.adapters
from onnx_convert import InternalError, RefusedError
from onnx_convert.spec import opsets

DOWN, UP = opsets.DOWN, opsets.UP


@pytest.mark.parametrize(
    ("start", "stop", "path"), [(1, 3, [1, 2]), (1, 2, [1]), (2, 3, [2]), (3, 1, [3, 2]), (3, 2, [3]), (2, 1, [2])]
)
def test_every_boundary_on_the_way_is_crossed_in_order(start: int, stop: int, path: list[int]) -> None:
    converted = onnx_convert.convert(own("Walker", start), to={OWN: stop})
    (node,) = converted.model.graph.node
    assert helper.get_node_attr_value(node, "path") == path
    assert opset_imports(converted.model) == {"": 17, OWN: stop}
    assert len(converted.report.steps) == len(path)


def test_only_the_boundaries_of_the_own_operator_are_crossed() -> None:
    source = model("(float[2,3] x) => (float[2,3] z) { y = Relu(x) z = Softmax <axis = 1> (y) }", 11)
    report = onnx_convert.convert(source, to=16).report
    assert steps(report) == [("Softmax", 13, UP)]


def test_up_and_down_again_is_where_it_began() -> None:
    source = model("(float[2,3] x) => (float[1,2,3] y) { y = Unsqueeze <axes = [0]> (x) }", 12)
    there = onnx_convert.convert(source, to=17).model
    back = onnx_convert.convert(there, to=12).model
    assert back.SerializeToString(deterministic=True) == source.SerializeToString(deterministic=True)


def test_a_rewrite_that_leads_to_itself_is_a_bug() -> None:
    with pytest.raises(InternalError, match="Turning@2 leads to itself"):
        onnx_convert.convert(own("Turning"), to={OWN: 2})


@pytest.mark.parametrize(
    ("operator", "adapter", "text"),
    [("Broken", "divide", "ZeroDivisionError"), ("Wrong", "change_the_rank", "rank")],
)
def test_a_bug_of_an_adapter_names_adapter_and_node(operator: str, adapter: str, text: str) -> None:
    with pytest.raises(InternalError, match=text) as caught:
        onnx_convert.convert(own(operator), to={OWN: 2})
    assert (caught.value.adapter, caught.value.node) == (adapter, f"{operator}_0")


# ---- promises


@pytest.mark.parametrize(
    ("operator", "options", "form"),
    [
        ("Walker", {}, "exact"),
        ("Walker", {"exact": True}, "exact"),
        ("Rounded", {}, "equivalent"),
        ("Rounded", {"exact": True}, "--exact"),
        ("Guessed", {}, "--allow conditional"),
        ("Guessed", {"allow": ["conditional"]}, "conditional"),
    ],
)
def test_forms(operator: str, options: dict, form: str) -> None:
    if form.startswith("--"):
        with pytest.raises(RefusedError) as caught:
            onnx_convert.convert(own(operator), to={OWN: 2}, **options)
        assert form in caught.value.refusals[0].remedy
    else:
        assert onnx_convert.convert(own(operator), to={OWN: 2}, **options).report.form == form
