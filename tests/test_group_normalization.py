# SPDX-License-Identifier: Apache-2.0
"""GroupNormalization: up from version 18, which is deprecated, so that no legal model has it; and down in float."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_convert
from oracle import compare, run, validate

GROUPS, CHANNELS = 3, 6
RANDOM = np.random.default_rng(0)


def model(opset: int, x: str, parameters: str, dtype: str = "float", attributes: str = "") -> ModelProto:
    """One node on three groups, the input hidden from inference if `x` is empty."""
    head = f"{dtype}[{x or '2,6,4'}] x, {dtype}[{parameters}] s, {dtype}[{parameters}] b, int64[k] shape"
    given = "x" if x else "hidden"
    nodes = "" if x else "hidden = Reshape(x, shape) "
    nodes += f"y = GroupNormalization<num_groups=3{attributes}>({given}, s, b)"
    graph = onnx.parser.parse_graph(f"g ({head}) => ({dtype}[{x}] y) {{ {nodes} }}")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def feeds(shape: tuple[int, ...], parameters: int, dtype: str) -> dict[str, np.ndarray]:
    drawn = {"x": RANDOM.standard_normal(shape), "s": RANDOM.random(parameters) + 0.5, "b": RANDOM.random(parameters)}
    return {**{k: v.astype(dtype) for k, v in drawn.items()}, "shape": np.array(shape, dtype=np.int64)}


def meaning(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """What the text says, with one scale and bias a channel."""
    rows = x.astype(np.float64).reshape(x.shape[0], GROUPS, -1)
    deviation = np.sqrt(rows.var(axis=2, keepdims=True) + 1e-5)
    stage = ((rows - rows.mean(axis=2, keepdims=True)) / deviation).reshape(x.shape)
    column = (-1, *(1,) * (x.ndim - 2))
    return np.asarray(stage * scale.reshape(column) + bias.reshape(column)).astype(x.dtype)


SHAPES = [("2,6,4", "known"), ("2,6", "a row"), ("N,6,M", "sizes unknown"), ("N,C,M", "channels unknown")]


@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
@pytest.mark.parametrize("x", [shape for shape, _ in SHAPES], ids=[name for _, name in SHAPES])
def test_groups_become_channels(x: str, dtype: str) -> None:
    source = model(18, x, str(GROUPS), dtype)
    result = onnx_convert.convert(source, to=21).model
    validate(result)
    numpy_dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    given = feeds((2, 6) if x == "2,6" else (2, 6, 4), GROUPS, numpy_dtype)
    spread = [np.repeat(given[name], CHANNELS // GROUPS) for name in "sb"]
    assert compare([meaning(given["x"], *spread)], run(result, given)) is None
    (node,) = (node for node in result.graph.node if node.op_type == "GroupNormalization")
    stash = {a.name: a.i for a in node.attribute}.get("stash_type", 1)
    assert stash == helper.np_dtype_to_tensor_dtype(np.dtype(numpy_dtype))


@pytest.mark.parametrize("x", [shape for shape, _ in SHAPES], ids=[name for _, name in SHAPES])
def test_groups_go_down_over_channels(x: str) -> None:
    result = onnx_convert.convert(model(18, x, str(GROUPS)), to=17).model
    validate(result)
    given = feeds((2, 6) if x == "2,6" else (2, 6, 4), GROUPS, "float32")
    spread = [np.repeat(given[name], CHANNELS // GROUPS) for name in "sb"]
    assert compare([meaning(given["x"], *spread)], run(result, given)) is None


def test_a_scale_that_is_not_by_group_is_refused() -> None:
    with pytest.raises(onnx_convert.RefusedError, match="6 elements"):
        onnx_convert.convert(model(18, "2,6,4", "6"), to=21)


@pytest.mark.parametrize("target", [20, 18, 13])
@pytest.mark.parametrize("x", ["2,6,4", "2,6", "N,6,M", "N,C,M", ""])
def test_groups_become_instances(x: str, target: int) -> None:
    result = onnx_convert.convert(model(21, x, str(CHANNELS)), to=target).model
    assert "GroupNormalization" not in {node.op_type for node in result.graph.node}
    given = feeds((2, 6) if x == "2,6" else (2, 6, 4), CHANNELS, "float32")
    assert compare([meaning(given["x"], given["s"], given["b"])], run(result, given)) is None


def test_a_large_mean_leaves_the_variance_alone() -> None:
    result = onnx_convert.convert(model(21, "2,6,4", str(CHANNELS)), to=20).model
    given = feeds((2, 6, 4), CHANNELS, "float32")
    given["x"] += np.float32(1024)
    (y,) = run(result, given)  # E[x^2] - E[x]^2 would be off by some percent
    np.testing.assert_allclose(y, meaning(given["x"], given["s"], given["b"]), atol=1e-3)
