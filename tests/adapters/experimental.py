# SPDX-License-Identifier: Apache-2.0
"""The experimental operators of opset 1, which neither a schema nor an evaluator knows: numpy says what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnx_convert
from oracle import compare, run, validate

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]


IMAGE = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5) / 7 - 5


@dataclass(frozen=True)
class Experiment:
    """An operator, what it means, and how a node of it is written."""

    operator: str
    meaning: Callable[[Array], Array]
    attributes: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, list[int]] = field(default_factory=dict)


CASES = [
    Experiment("Affine", lambda x: x),
    Experiment("Affine", lambda x: 2 * x + 3, {"alpha": 2.0, "beta": 3.0}),
    Experiment("Scale", lambda x: x * np.float32(0.3), {"scale": 0.3}),
    Experiment("ScaledTanh", lambda x: 2 * np.tanh(3 * x), {"alpha": 2.0, "beta": 3.0}),
    Experiment("ParametricSoftplus", lambda x: 2 * np.log1p(np.exp(3 * x)), {"alpha": 2.0, "beta": 3.0}),
    Experiment(
        "ImageScaler", lambda x: 2 * x + np.float32([[[1]], [[2]], [[3]]]), {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}
    ),
    Experiment("ImageScaler", lambda x: 2 * x, {"scale": 2.0}),
    Experiment("Crop", lambda x: x[:, :, 2:3, 1:3], {"border": [1, 2, 2, 1]}),
    Experiment("Crop", lambda x: x[:, :, 2:, 1:], {"border": [1, 2, 0, 0]}),
    Experiment("Crop", lambda x: x[:, :, 1:3, 2:5], {"border": [2, 1, 0, 0], "scale": [2, 3]}),
    Experiment("ThresholdedRelu", lambda x: np.where(x > 1, x, 0)),
    Experiment("ThresholdedRelu", lambda x: np.where(x > 2.5, x, 0), {"alpha": 2.5}),
    Experiment("DynamicSlice", lambda x: x[1:2, :2], inputs={"starts": [1, 0], "ends": [2, 2]}),
    Experiment("DynamicSlice", lambda x: x[:, :, 1:-1], inputs={"starts": [1], "ends": [-1], "axes": [2]}),
]


def model_of(row: Experiment, opset: int = 7) -> onnx.ModelProto:
    given = [helper.make_tensor(name, TensorProto.INT64, [len(v)], v) for name, v in row.inputs.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE.shape)]
    inputs += [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in given]
    node = helper.make_node(row.operator, ["x", *row.inputs], ["y"], **row.attributes)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)
    graph = helper.make_graph([node], "experimental", inputs, [output], given)
    return helper.make_model(graph, ir_version=3, opset_imports=[helper.make_opsetid("", opset)])


@pytest.mark.parametrize("target", [10, 13, 21])
@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row.operator}{row.attributes or ''}")
def test_becomes_what_it_means(row: Experiment, target: int) -> None:
    result = onnx_convert.convert_version(model_of(row), target)
    validate(result)
    (found,) = run(result, {"x": IMAGE})
    assert compare([row.meaning(IMAGE).astype(np.float32)], [found]) is None


@pytest.mark.parametrize("row", CASES[:1] + CASES[10:11], ids=lambda row: row.operator)
def test_stays_below(row: Experiment) -> None:
    result = onnx_convert.convert_version(model_of(row), 8)
    assert [node.op_type for node in result.graph.node] == [row.operator]


def test_what_never_was_an_operator_of_onnx_is_refused() -> None:
    source = model_of(Experiment("GivenTensorFill", lambda x: x))
    with pytest.raises(onnx_convert.RefusedError, match=r"not an operator of ai\.onnx at opset 7"):
        onnx_convert.convert(source, to=10)
