# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization (6: four dimensions, 7: `is_test` goes, 9: `spatial`, 14: `training_mode` and three outputs, 15:
more than one dtype), InstanceNormalization (6), GroupNormalization (18, 21), MeanVarianceNormalization (9).

BatchNormalization in training is told by numpy: no evaluator runs the versions with five outputs, and onnxruntime
computes those with three in place, over the values that it is fed. No legal model holds GroupNormalization 18.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, helper
from texts import model

import onnx_convert
from boundaries import Row, each_of, keeps, refuses, rewrites
from oracle import compare, run, validate


def _batch_of_two(x: str, attributes: str) -> str:
    return (
        f"(float[{x}] x) => (float[{x}] y) <float[2] s = {{1.5, -1.0}}, float[2] b = {{0.5, 2.0}}, "
        f"float[2] m = {{0.1, -0.2}}, float[2] v = {{1.0, 2.0}}> "
        f"{{ y = BatchNormalization<{attributes}>(x, s, b, m, v) }}"
    )


def _instance(x: str, attributes: str = "") -> str:
    return (
        f"(float[{x}] x, float[2] s, float[2] b) => (float[{x}] y) {{ y = InstanceNormalization{attributes}(x, s, b) }}"
    )


BN = "BatchNormalization"
INSTANCE = "InstanceNormalization"

FOUR_DIMENSIONS: list[Row] = [
    rewrites(BN, 1, 6, _batch_of_two("3,2,4,5", "is_test=1, consumed_inputs=[0,0,0,0,0]"), into=[BN]),
    rewrites(BN, 6, 1, _batch_of_two("3,2,4,5", "is_test=1"), into=[BN]),
    refuses(f"{BN} of a row", 6, 1, _batch_of_two("3,2", "is_test=1"), because="four dimensions"),
    rewrites(INSTANCE, 1, 6, _instance("3,2,4,5", "<consumed_inputs=[0,0,0]>"), into=[INSTANCE]),
    keeps(INSTANCE, 22, 1, _instance("3,2,4,5")),
    refuses(f"{INSTANCE} of three dimensions", 6, 1, _instance("3,2,4"), because="four dimensions"),
]


def batch(x: str, c: str, attributes: str = "", outputs: str = "y") -> str:
    """Returns a graph with one BatchNormalization; x and c are the sizes of the data and of each parameter."""
    stated = "".join(f", float[{c}] {name}" for name in outputs.replace(",", " ").split()[1:])
    head = f"(float[{x}] x, float[{c}] s, float[{c}] b, float[{c}] m, float[{c}] v) => (float[{x}] y{stated})"
    return f"{head} {{ {outputs} = BatchNormalization{attributes}(x, s, b, m, v) }}"


def mixed(dtype: str, scale: str, mean: str) -> str:
    """One with a dtype each for data, scale and statistics."""
    head = f"({dtype}[2,3,4] x, {scale}[3] s, {scale}[3] b, {mean}[3] m, {mean}[3] v) => ({dtype}[2,3,4] y)"
    return f"{head} {{ y = BatchNormalization(x, s, b, m, v) }}"


ONE, TWO = {"v": [0.5, 1.0, 2.0]}, {"v": [[0.5, 1.0, 2.0, 1.5]] * 3}

BATCH: list[Row] = [
    rewrites("BatchNormalization that infers", 6, 7, batch("2,3,4", "3", "<is_test=1>"), feeds=ONE, into=[BN]),
    rewrites("BatchNormalization that infers", 6, 25, batch("2,3,4,5", "3", "<is_test=1>"), feeds=ONE, into=[BN]),
    rewrites("BatchNormalization that infers", 7, 6, batch("2,3,4", "3"), feeds=ONE, into=[BN]),
    refuses("BatchNormalization in doubt", 6, 7, batch("2,3,4", "3"), because="inference"),
    refuses(
        "BatchNormalization in contradiction",
        6,
        7,
        batch("2,3", "3", "<is_test=1>", "y, m1, v1, sm, sv"),
        because="training",
    ),
    keeps("BatchNormalization", 7, 13, batch("2,3,4", "3", "<epsilon=0.1>"), feeds=ONE),
    rewrites("BatchNormalization by channel", 7, 9, batch("2,3,4", "3", "<spatial=1>"), feeds=ONE, into=[BN]),
    rewrites("BatchNormalization by feature", 7, 9, batch("2,3,4", "3,4", "<spatial=0>"), feeds=TWO),
    rewrites("BatchNormalization by feature", 7, 22, batch("2,3,4", "3,4", "<spatial=0>"), feeds=TWO),
    rewrites("BatchNormalization by feature", 7, 6, batch("2,3,4", "3,4", "<spatial=0>"), feeds=TWO),
    rewrites("BatchNormalization by feature of a row", 7, 9, batch("2,3", "3", "<spatial=0>"), feeds=ONE),
    keeps("BatchNormalization", 9, 7, batch("N,3,4", "3"), feeds=ONE),
    rewrites("BatchNormalization of a vector", 9, 7, batch("4", "1"), feeds={"v": [0.5]}),
    keeps("BatchNormalization", 9, 22, batch("2,3,4", "3"), feeds=ONE),
    keeps("BatchNormalization", 22, 9, batch("2,3,4", "3"), feeds=ONE),
    rewrites("BatchNormalization that says so", 14, 13, batch("2,3", "3", "<training_mode=0>"), feeds=ONE, into=[BN]),
    *(
        rewrites(f"BatchNormalization of float16 by {scale}", 15, to, mixed("float16", scale, "float"), feeds=ONE)
        for scale, to in (("float", 14), ("float", 13), ("float", 9), ("float16", 13), ("float16", 9))
    ),
    keeps(
        "BatchNormalization of float16 by float16 and float", 22, 14, mixed("float16", "float16", "float"), feeds=ONE
    ),
    rewrites(
        "BatchNormalization of one axis in training",
        14,
        13,
        "(float[3] x, float[1] s, float[1] b, float[1] m, float[1] v) => (float[3] y, float[1] n, float[1] w)"
        " { y, n, w = BatchNormalization<training_mode=1>(x, s, b, m, v) }",
        feeds={"v": [0.5]},
    ),
]


def group(x: str, c: int, attributes: str, dtype: str = "float") -> str:
    """Returns a graph with one GroupNormalization of c channels."""
    head = f"({dtype}[{x}] x, {dtype}[{c}] s, {dtype}[{c}] b) => ({dtype}[{x}] y)"
    return f"{head} {{ y = GroupNormalization<{attributes}>(x, s, b) }}"


# The first stage in double, or the data in float16: what a float rounds away would show in the results.
DOUBLE = "num_groups={},stash_type=11"
GROUP: list[Row] = [
    rewrites("GroupNormalization of images", 21, 20, group("2,6,3,4", 6, DOUBLE.format(3), "double")),
    rewrites("GroupNormalization of images", 21, 11, group("2,6,3,4", 6, f"{DOUBLE.format(3)},epsilon=0.1", "double")),
    rewrites("GroupNormalization of images", 22, 6, group("2,6,3,4", 6, DOUBLE.format(2), "double")),
    rewrites("GroupNormalization of unknown sizes", 21, 13, group("N,6,H,W", 6, DOUBLE.format(2), "double")),
    rewrites("GroupNormalization of a row", 21, 20, group("2,6", 6, DOUBLE.format(2), "double")),
    rewrites("GroupNormalization of one group", 21, 20, group("2,6,5", 6, DOUBLE.format(1), "double")),
    rewrites("GroupNormalization of float16", 21, 20, group("2,6,5", 6, "num_groups=2", "float16")),
    rewrites("GroupNormalization in float16", 21, 20, group("2,6,5", 6, "num_groups=2,stash_type=10", "float16")),
]


ROWS = [*FOUR_DIMENSIONS, *BATCH, *GROUP]

test_rows = each_of(ROWS)


STATISTICS = ("m1", "v1", "sm", "sv")
EPSILON, MOMENTUM = 1e-5, 0.7


def batch_model(opset: int, x: str, read: str, attributes: str) -> ModelProto:
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


def batch_meaning(x: Any, s: Any, b: Any, m: Any, v: Any) -> dict[str, np.ndarray]:
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
    before = batch_model(source, x, read, f"momentum={MOMENTUM}")
    if "sv" in read:
        with pytest.raises(onnx_convert.RefusedError, match="saved_var"):
            onnx_convert.convert(before, to=target)
    result = onnx_convert.convert(before, to=target, allow={"conditional"} if "sv" in read else set()).model
    validate(result)
    random = np.random.default_rng(0)
    given = {name: (random.random(3) + 0.5).astype(np.float32) for name in ("s", "b", "m", "v")}
    given["x"] = random.standard_normal((4, 3) if x == "4,3" else (4, 3, 5)).astype(np.float32)
    expected = batch_meaning(**given)
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
    expected = batch_meaning(**{name: array.astype(np.float64) for name, array in feeds.items()})
    got = run(result, {**feeds, "shape": np.array(shape, dtype=np.int64)})
    for name, array, dtype in zip(("y", "m1", "v1"), got, (data, statistic, statistic), strict=True):
        assert array.dtype == NUMPY[dtype]
        loosest = max((data, scale, statistic), key=lambda kind: np.finfo(NUMPY[kind]).eps)
        tolerance = {"float": 1e-5, "double": 1e-6, "float16": 2e-3}[loosest]  # epsilon and momentum are floats
        np.testing.assert_allclose(array.astype(np.float64), expected[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("x", ["0,4,3", "2,4,0"])
def test_groups_of_nothing_are_nothing(x: str) -> None:
    """No evaluator runs such a node."""
    graph = onnx.parser.parse_graph(f"g {group(x, 4, 'num_groups=2')}")
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    for target in (20, 9):
        result = onnx_convert.convert(source, to=target).model
        assert [node.op_type for node in result.graph.node] == ["Identity"]
        validate(result)


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


GROUPS, CHANNELS = 3, 6
RANDOM = np.random.default_rng(0)


def group_model(opset: int, x: str, parameters: str, dtype: str = "float", attributes: str = "") -> ModelProto:
    """One node on three groups, the input hidden from inference if `x` is empty."""
    head = f"{dtype}[{x or '2,6,4'}] x, {dtype}[{parameters}] s, {dtype}[{parameters}] b, int64[k] shape"
    given = "x" if x else "hidden"
    nodes = "" if x else "hidden = Reshape(x, shape) "
    nodes += f"y = GroupNormalization<num_groups=3{attributes}>({given}, s, b)"
    graph = onnx.parser.parse_graph(f"g ({head}) => ({dtype}[{x}] y) {{ {nodes} }}")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def group_feeds(shape: tuple[int, ...], parameters: int, dtype: str) -> dict[str, np.ndarray]:
    drawn = {"x": RANDOM.standard_normal(shape), "s": RANDOM.random(parameters) + 0.5, "b": RANDOM.random(parameters)}
    return {**{k: v.astype(dtype) for k, v in drawn.items()}, "shape": np.array(shape, dtype=np.int64)}


def group_meaning(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Returns what the text says, with one scale and bias a channel."""
    rows = x.astype(np.float64).reshape(x.shape[0], GROUPS, -1)
    deviation = np.sqrt(rows.var(axis=2, keepdims=True) + 1e-5)
    stage = ((rows - rows.mean(axis=2, keepdims=True)) / deviation).reshape(x.shape)
    column = (-1, *(1,) * (x.ndim - 2))
    return np.asarray(stage * scale.reshape(column) + bias.reshape(column)).astype(x.dtype)


SHAPES = [("2,6,4", "known"), ("2,6", "a row"), ("N,6,M", "sizes unknown"), ("N,C,M", "channels unknown")]


@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
@pytest.mark.parametrize("x", [shape for shape, _ in SHAPES], ids=[name for _, name in SHAPES])
def test_groups_become_channels(x: str, dtype: str) -> None:
    source = group_model(18, x, str(GROUPS), dtype)
    result = onnx_convert.convert(source, to=21).model
    validate(result)
    numpy_dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    given = group_feeds((2, 6) if x == "2,6" else (2, 6, 4), GROUPS, numpy_dtype)
    spread = [np.repeat(given[name], CHANNELS // GROUPS) for name in "sb"]
    assert compare([group_meaning(given["x"], *spread)], run(result, given)) is None
    (node,) = (node for node in result.graph.node if node.op_type == "GroupNormalization")
    stash = {a.name: a.i for a in node.attribute}.get("stash_type", 1)
    assert stash == helper.np_dtype_to_tensor_dtype(np.dtype(numpy_dtype))


@pytest.mark.parametrize("x", [shape for shape, _ in SHAPES], ids=[name for _, name in SHAPES])
def test_groups_go_down_over_channels(x: str) -> None:
    result = onnx_convert.convert(group_model(18, x, str(GROUPS)), to=17).model
    validate(result)
    given = group_feeds((2, 6) if x == "2,6" else (2, 6, 4), GROUPS, "float32")
    spread = [np.repeat(given[name], CHANNELS // GROUPS) for name in "sb"]
    assert compare([group_meaning(given["x"], *spread)], run(result, given)) is None


def test_a_scale_that_is_not_by_group_is_refused() -> None:
    with pytest.raises(onnx_convert.RefusedError, match="6 elements"):
        onnx_convert.convert(group_model(18, "2,6,4", "6"), to=21)


@pytest.mark.parametrize("target", [20, 18, 13])
@pytest.mark.parametrize("x", ["2,6,4", "2,6", "N,6,M", "N,C,M", ""])
def test_groups_become_instances(x: str, target: int) -> None:
    result = onnx_convert.convert(group_model(21, x, str(CHANNELS)), to=target).model
    assert "GroupNormalization" not in {node.op_type for node in result.graph.node}
    given = group_feeds((2, 6) if x == "2,6" else (2, 6, 4), CHANNELS, "float32")
    assert compare([group_meaning(given["x"], given["s"], given["b"])], run(result, given)) is None


def test_a_large_mean_leaves_the_variance_alone() -> None:
    result = onnx_convert.convert(group_model(21, "2,6,4", str(CHANNELS)), to=20).model
    given = group_feeds((2, 6, 4), CHANNELS, "float32")
    given["x"] += np.float32(1024)
    (y,) = run(result, given)  # E[x^2] - E[x]^2 would be off by some percent
    np.testing.assert_allclose(y, group_meaning(given["x"], given["s"], given["b"]), atol=1e-3)


# ---- MeanVarianceNormalization, which no schema describes below 9


def experimental(**attributes: int) -> ModelProto:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], **attributes)
    values = [helper.make_tensor_value_info(name, 1, [2, 3, 4, 5]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    return helper.make_model(graph, ir_version=3, opset_imports=[helper.make_opsetid("", 7)])


@pytest.mark.parametrize("target", [10, 13, 21])
def test_the_experimental_operator_means_the_later_one(target: int) -> None:
    result = onnx_convert.convert_version(experimental(), target)
    validate(result)
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5) / 7 - 5
    axes = (0, 2, 3)
    expected = (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)
    assert compare([expected.astype(np.float32)], run(result, {"x": x})) is None


def test_flags_of_the_experimental_operator_are_refused() -> None:
    with pytest.raises(onnx_convert.RefusedError, match="no exact definition"):
        onnx_convert.convert(experimental(across_channels=1), to=9)


@pytest.mark.parametrize("target", [9, 13, 6])
@pytest.mark.parametrize(("x", "c"), [("2,3,4", "3"), ("n,c,h", "c"), ("2,3,4", "12"), ("2,3,4", "4,3")])
def test_statistics_by_channel_are_not_those_of_features(x: str, c: str, target: int) -> None:
    """Exporters wrote them with spatial=0, against the text; spatial=1 is what they mean."""
    with pytest.raises((onnx_convert.RefusedError, onnx_convert.InvalidModelError)):
        onnx_convert.convert(model(batch(x, c, "<spatial=0>"), 8), to=target)


def test_statistics_of_channels_where_each_feature_has_its_own() -> None:
    graph = "(float[2,3,4] x, float[3] s) => (float[2,3,4] y) { y = BatchNormalization<spatial=0>(x, s, s, s, s) }"
    with pytest.raises(onnx_convert.RefusedError, match="spatial is 0"):
        onnx_convert.convert(model(graph, 8), to=9)
