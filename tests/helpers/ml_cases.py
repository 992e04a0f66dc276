# SPDX-License-Identifier: Apache-2.0
"""Models of one node of ai.onnx.ml: the numbers are onnxruntime's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_convert
from oracle import compare, run

ML = "ai.onnx.ml"
STR, INT, FLT, DBL = TensorProto.STRING, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE
I16 = TensorProto.INT16


@dataclass(frozen=True)
class MlCase:
    """One node, the versions of ai.onnx.ml that it comes from and goes to, and what it is fed."""

    name: str
    source: int
    target: int
    operator: str
    x: np.ndarray
    outputs: tuple[int, ...]
    attributes: Mapping[str, Any]
    because: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.source}->{self.target}"

    def model(self, shape: list[int | str | None] | None = None) -> ModelProto:
        """Returns the model of the case; all ranks are known, and sizes too if no shape is given."""
        node = helper.make_node(self.operator, ["x"], list("yz"[: len(self.outputs)]), name="n", domain=ML)
        node.attribute.extend(helper.make_attribute(k, v) for k, v in self.attributes.items() if v is not None)
        x = helper.np_dtype_to_tensor_dtype(self.x.dtype)
        given = helper.make_tensor_value_info("x", x, list(self.x.shape) if shape is None else shape)
        ranks = (self.x.ndim if self.operator == "LabelEncoder" else 2, 2) if len(self.outputs) == 1 else (1, 2)
        made = [
            helper.make_tensor_value_info(name, dtype, [None] * rank)
            for name, dtype, rank in zip(node.output, self.outputs, ranks, strict=False)
        ]
        opsets = [helper.make_opsetid("", 16), helper.make_opsetid(ML, self.source)]
        graph = helper.make_graph([node], "g", [given], made)
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def tensor(elements: Any, dtype: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(elements, dtype=dtype))


def check(case: MlCase, sizes: str) -> None:
    """Compares the numbers of a model before and after; or the reason of a refusal with that of the case."""
    model = case.model(None if sizes == "known" else [None] * case.x.ndim)
    try:
        result = onnx_convert.convert(model, to={ML: case.target}).model
    except onnx_convert.RefusedError as refused:
        assert case.because, refused
        assert case.because in refused.refusals[0].reason
        return
    assert not case.because, [node.op_type for node in result.graph.node]
    assert {o.domain: o.version for o in result.opset_import} == {"": 16, ML: case.target}
    onnx.checker.check_model(result, full_check=True)
    feeds = {"x": case.x}
    difference = compare(run(model, feeds), run(result, feeds))
    assert difference is None, difference
