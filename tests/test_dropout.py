# SPDX-License-Identifier: Apache-2.0
"""Dropout that is random, of which the distribution is judged, and the mask where nothing is dropped."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_convert
from oracle import run, validate

X = np.random.default_rng(0).standard_normal((100, 100)).astype(np.float32) + np.float32(5)


def model(opset: int, node: str, mask: str = "bool", more: str = "", dtype: str = "float") -> ModelProto:
    head = f"({dtype}[100,100] x{more}) => ({dtype}[100,100] y, {mask}[100,100] z)"
    initializers = "<float r = {0.25}, bool t = {1}>" if "r, t" in node else ""
    graph = onnx.parser.parse_graph(f"g {head} {initializers} {{ y, z = {node} }}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("target", [11, 9])
def test_training_is_written_out(target: int, dtype: str) -> None:
    source = model(12, "Dropout<seed=7>(x, r, t)", dtype=dtype)
    with pytest.raises(onnx_convert.RefusedError, match="distribution"):
        onnx_convert.convert(source, to=target)
    result = onnx_convert.convert(source, to=target, allow={"conditional"}).model
    validate(result)
    x = X.astype(np.float16 if dtype == "float16" else np.float32)
    y, kept = run(result, {"x": x})
    assert kept.dtype == bool
    assert abs(kept.mean() - 0.75) < 0.03
    np.testing.assert_allclose(y, np.where(kept, x.astype(np.float64) / 0.75, 0), rtol=2e-3)


def test_training_at_run_time() -> None:
    source = model(12, "Dropout(x, r, t)", more=", float r, bool t").SerializeToString()
    source = onnx.ModelProto.FromString(source)
    del source.graph.initializer[:]
    result = onnx_convert.convert(source, to=11, allow={"conditional"}).model
    y, kept = run(result, {"x": X, "r": np.array(0.5, dtype=np.float32), "t": np.array(True)})
    assert abs(kept.mean() - 0.5) < 0.03
    np.testing.assert_allclose(y, np.where(kept, X * 2, 0), rtol=1e-5)


def test_the_absence_of_is_test_means_training() -> None:
    result = onnx_convert.convert(model(6, "Dropout<ratio=0.25>(x)", mask="float"), to=13).model
    validate(result)
    y, kept = run(result, {"x": X})
    assert kept.dtype == np.float32
    assert abs(kept.mean() - 0.75) < 0.03
    np.testing.assert_allclose(y, X / np.float32(0.75) * kept, rtol=1e-5)


def test_a_mask_that_is_not_specified_becomes_one_that_is() -> None:
    """Below 12 onnxruntime says false, onnx's own evaluator true; from 12 on the text does, and all do as it says."""
    conversion = onnx_convert.convert(model(11, "Dropout<ratio=0.25>(x)"), to=12)
    y, kept = run(conversion.model, {"x": X})
    assert kept.all()
    np.testing.assert_array_equal(y, X)
    assert conversion.report.form == "equivalent"
