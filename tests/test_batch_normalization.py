# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization in training: up from the versions with five outputs, which no evaluator runs, and down from the
versions with three, which onnxruntime computes in place, over the values that it is fed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_convert
from oracle import compare, run, validate

STATISTICS = ("m1", "v1", "sm", "sv")
EPSILON, MOMENTUM = 1e-5, 0.7


def model(opset: int, x: str, read: str, attributes: str) -> ModelProto:
    """One node with five outputs, of which those in `read` are outputs of the graph; `x` empty: no known rank."""
    parameters = ", ".join(f"float[3] {name}" for name in ("s", "b", "m", "v"))
    made = ", ".join(f"float[3] {name}" for name in read.split())
    given, nodes = ("x", "") if x else ("hidden", "hidden = Reshape(x, shape) ")
    names = ", ".join(name if name in read.split() else '""' for name in STATISTICS)
    nodes += f"y, {names} = BatchNormalization<{attributes}>({given}, s, b, m, v)"
    head = f"(float[{x or 'A,B,C'}] x, int64[k] shape, {parameters}) => (float[{x or 'A,B,C'}] y, {made})"
    graph = onnx.parser.parse_graph(f"g {head} {{ {nodes} }}")
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


def meaning(x: Any, s: Any, b: Any, m: Any, v: Any) -> dict[str, np.ndarray]:
    axes = (0, *range(2, x.ndim))
    column = (3, *(1,) * (x.ndim - 2))
    mean, variance = x.mean(axis=axes), x.var(axis=axes)
    y = (x - mean.reshape(column)) / np.sqrt(variance.reshape(column) + EPSILON) * s.reshape(column) + b.reshape(column)
    running = (m * MOMENTUM + mean * (1 - MOMENTUM), v * MOMENTUM + variance * (1 - MOMENTUM))
    return dict(zip(("y", *STATISTICS), (y, *running, mean, variance), strict=True))


@pytest.mark.parametrize("source", [6, 7, 9, 13])
@pytest.mark.parametrize("target", [14, 22])
@pytest.mark.parametrize("x", ["4,3,5", "N,3,M", "4,3", ""])
@pytest.mark.parametrize("read", ["m1 v1", "m1 v1 sm", "m1 v1 sm sv"])
def test_five_outputs(source: int, target: int, x: str, read: str) -> None:
    before = model(source, x, read, f"momentum={MOMENTUM}")
    if "sv" in read:
        with pytest.raises(onnx_convert.RefusedError, match="saved_var"):
            onnx_convert.convert(before, to=target)
    result = onnx_convert.convert(before, to=target, allow={"conditional"} if "sv" in read else set()).model
    validate(result)
    random = np.random.default_rng(0)
    given = {name: (random.random(3) + 0.5).astype(np.float32) for name in ("s", "b", "m", "v")}
    given["x"] = random.standard_normal((4, 3) if x == "4,3" else (4, 3, 5)).astype(np.float32)
    expected = meaning(**given)
    got = run(result, {**given, "shape": np.array(given["x"].shape, dtype=np.int64)})
    wanted = [expected[name].astype(np.float32) for name in ("y", *read.split())]
    assert compare(wanted, got) is None


DOWN = [  # dtypes of the data, of scale and bias, and of the statistics
    (14, "float", "float", "float"),
    (14, "double", "double", "double"),
    (14, "float16", "float16", "float16"),
    (14, "float16", "float16", "float"),
    (15, "float16", "float", "float"),
    (15, "float", "float", "double"),
]
NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16}


@pytest.mark.parametrize("dtypes", DOWN, ids=str)
@pytest.mark.parametrize("target", [13, 9, 7])
@pytest.mark.parametrize("x", ["4,3,5", "4,3,2,2", "N,3,M", "4,3", ""])
def test_three_outputs(dtypes: tuple[int, str, str, str], target: int, x: str) -> None:
    source, data, scale, statistic = dtypes
    parameters = f"{scale}[3] s, {scale}[3] b, {statistic}[3] m, {statistic}[3] v"
    shape = {"4,3": (4, 3), "4,3,2,2": (4, 3, 2, 2)}.get(x, (4, 3, 5))
    given, nodes = ("x", "") if x else ("hidden", "hidden = Reshape(x, shape) ")
    nodes += f"y, m1, v1 = BatchNormalization<training_mode=1,momentum={MOMENTUM}>({given}, s, b, m, v)"
    made = f"{data}[{x or 'A,B,C'}] y, {statistic}[3] m1, {statistic}[3] v1"
    graph = onnx.parser.parse_graph(
        f"g ({data}[{x or 'A,B,C'}] x, int64[k] shape, {parameters}) => ({made}) {{ {nodes} }}"
    )
    before = helper.make_model(graph, opset_imports=[helper.make_opsetid("", source)], ir_version=8)
    result = onnx_convert.convert(before, to=target).model
    validate(result)
    assert "BatchNormalization" not in {node.op_type for node in result.graph.node}
    random = np.random.default_rng(0)
    kinds = {"s": scale, "b": scale, "m": statistic, "v": statistic}
    feeds = {name: (random.random(3) + 0.5).astype(NUMPY[dtype]) for name, dtype in kinds.items()}
    feeds["x"] = random.standard_normal(shape).astype(NUMPY[data])
    expected = meaning(**{name: array.astype(np.float64) for name, array in feeds.items()})
    got = run(result, {**feeds, "shape": np.array(shape, dtype=np.int64)})
    for name, array, dtype in zip(("y", "m1", "v1"), got, (data, statistic, statistic), strict=True):
        assert array.dtype == NUMPY[dtype]
        loosest = max((data, scale, statistic), key=lambda kind: np.finfo(NUMPY[kind]).eps)
        tolerance = {"float": 1e-5, "double": 1e-6, "float16": 2e-3}[loosest]  # epsilon and momentum are floats
        np.testing.assert_allclose(array.astype(np.float64), expected[name], rtol=tolerance, atol=tolerance)


def test_inference_of_mixed_dtypes_goes_up_and_down() -> None:
    graph = onnx.parser.parse_graph(
        "g (double[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (double[2,3] y)"
        "{ y = BatchNormalization(x, s, b, m, v) }"
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    random = np.random.default_rng(0)
    feeds = {name: (random.random(3) + 0.5).astype(np.float32) for name in ("s", "b", "m", "v")}
    feeds["x"] = random.standard_normal((2, 3))
    x, s, b, m, v = (feeds[name].astype(np.float64) for name in ("x", "s", "b", "m", "v"))
    for target in (14, 13, 9):
        (y,) = run(onnx_convert.convert(source, to=target).model, feeds)
        assert y.dtype == np.float64
        np.testing.assert_allclose(y, (x - m) / np.sqrt(v + EPSILON) * s + b, rtol=1e-6)
