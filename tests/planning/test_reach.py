# SPDX-License-Identifier: Apache-2.0
"""The nearest opset that is within reach, where the target is not."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from texts import model

import onnx_convert
import onnx_convert.adapters
from onnx_convert import RefusedError
from onnx_convert.spec import opsets

DOWN, UP = opsets.DOWN, opsets.UP


# ---- refusals


@pytest.mark.usefixtures("undecided")
def test_the_nearest_opset_is_named() -> None:
    source = model("(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }", 9)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=17)
    assert caught.value.nearest == 12


@pytest.mark.usefixtures("undecided")
def test_no_opset_on_the_way_is_within_reach() -> None:
    source = model("(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }", 12)
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(source, to=17)
    assert caught.value.nearest is None


def test_what_stays_behind_is_within_reach_where_no_boundary_of_ai_onnx_is_to_blame() -> None:
    """A key that is repeated needs LabelEncoder@4; with ai.onnx.ml where it is, all opsets are within reach."""
    keys, values = (numpy_helper.from_array(np.array([1.0, other]), "t") for other in (1.0, 2.0))
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_tensor=keys, values_tensor=values)
    value = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [2]) for name in "xy"]
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("ai.onnx.ml", 5)]
    graph = helper.make_graph([node], "g", value[:1], value[1:])
    with pytest.raises(RefusedError) as caught:
        onnx_convert.convert(helper.make_model(graph, opset_imports=imports, ir_version=10), to=13)
    assert (caught.value.nearest, caught.value.also) == (13, {"ai.onnx.ml": 5})
