# SPDX-License-Identifier: Apache-2.0
"""LayerNormalization (17), RMSNormalization (23) and MeanVarianceNormalization (9) where they do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import compare, run, validate


def layer(attributes: str = "", scale: str = "4", *, bias: str = "", statistics: str = "") -> str:
    """LayerNormalization of a tensor of three axes.

    Statistics are floats whatever the input is, so Celu, which takes nothing else, stands before.
    """
    more, b = (f", float[{bias}] b", ", b") if bias else ("", "")
    outputs = f", float[{statistics}] m, float[{statistics}] d" if statistics else ""
    results = "y, m, d" if statistics else "y"
    before, x = ("z = Celu(x) ", "z") if statistics else ("", "x")
    return (
        f"(float[2,3,4] x, float[{scale}] s{more}) => (float[2,3,4] y{outputs}) "
        f"{{ {before}{results} = LayerNormalization{attributes and f'<{attributes}>'}({x}, s{b}) }}"
    )


LAYERS: list[Row] = [
    rewrites("LayerNormalization", 17, 16, layer(), nodes=8),
    *(
        row
        for target in (16, 12, 10, 7, 6)
        for row in (
            rewrites("LayerNormalization with bias", 17, target, layer(bias="4")),
            rewrites("LayerNormalization of two axes", 17, target, layer("axis=1,epsilon=0.1", "3,4", bias="3,4")),
            rewrites("LayerNormalization and statistics", 17, target, layer("axis=-1", statistics="2,3,1")),
            rewrites("LayerNormalization of all axes", 17, target, layer("axis=0", "2,3,4", statistics="1,1,1")),
        )
    ),
    rewrites("LayerNormalization of columns", 17, 9, layer("axis=1", "1,4", bias="3,1", statistics="2,1,1")),
]


def rms(attributes: str = "", scale: str = "4") -> str:
    """RMSNormalization of a tensor of three axes."""
    return (
        f"(float[2,3,4] x, float[{scale}] s) => (float[2,3,4] y) "
        f"{{ y = RMSNormalization{attributes and f'<{attributes}>'}(x, s) }}"
    )


ROOT = ["Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul"]
RMS: list[Row] = [
    rewrites("RMSNormalization", 23, 22, rms(), into=ROOT),
    *(
        row
        for target in (22, 17, 12, 10, 7, 6)
        for row in (
            rewrites("RMSNormalization with epsilon", 23, target, rms("epsilon=0.5")),
            rewrites("RMSNormalization of two axes", 23, target, rms("axis=1", "3,4")),
            rewrites("RMSNormalization of all axes", 23, target, rms("axis=-3", "2,3,4")),
        )
    ),
]


def mvn(attributes: str = "") -> str:
    """MeanVarianceNormalization of images of floats, which Celu takes only: its body is not valid for any other."""
    return (
        "(float[2,3,4,5] x) => (float[2,3,4,5] y) "
        f"{{ z = Celu(x) y = MeanVarianceNormalization{attributes and f'<{attributes}>'}(z) }}"
    )


MVN: list[Row] = [
    row
    for target in (8, 7, 6)
    for row in (
        rewrites("MeanVarianceNormalization", 13, target, mvn()),
        rewrites("MeanVarianceNormalization of one axis", 12, target, mvn("axes=[1]")),
        rewrites("MeanVarianceNormalization of negative axes", 13, target, mvn("axes=[-1,-2]")),
    )
]


ROWS = [*LAYERS, *RMS, *MVN]

test_rows = each_of(ROWS)


RANDOM = np.random.default_rng(0)


def normalised(x: np.ndarray, scale: np.ndarray, epsilon: float, *, centred: bool) -> np.ndarray:
    """Returns what the text says, in double."""
    wide = x.astype(np.float64)
    distance = wide - wide.mean(axis=-1, keepdims=True) if centred else wide
    root = np.sqrt((distance**2).mean(axis=-1, keepdims=True) + epsilon)
    return np.asarray(distance / root * scale).astype(x.dtype)


NAMES = {"float32": "float", "float64": "double"}
NOISE = RANDOM.standard_normal((4, 64))


@pytest.mark.parametrize("target", [16, 12, 7])
@pytest.mark.parametrize(
    ("x", "epsilon"),
    [
        ((np.round(NOISE * 8) / 8 + 4096).astype(np.float32), 1e-5),
        ((NOISE * 1e-8 + 1).astype(np.float64), 1e-30),
        ((NOISE * 1e15).astype(np.float32), 1e-5),
        ((NOISE * 1e-15).astype(np.float32), 1e-36),
        ((NOISE * 8000).astype(np.float16), 1e-5),
        ((NOISE + 1000).astype(np.float16), 1e-5),
    ],
    ids=["large mean", "large mean in double", "large", "tiny", "squares beyond float16", "large mean in float16"],
)
def test_layers_keep_their_precision(x: np.ndarray, epsilon: float, target: int) -> None:
    name = NAMES.get(x.dtype.name, x.dtype.name)
    graph = (
        f"({name}[4,64] x, {name}[64] s) => ({name}[4,64] y) {{ y = LayerNormalization<epsilon={epsilon:e}>(x, s) }}"
    )
    scale = RANDOM.random(64).astype(x.dtype)
    got = run(onnx_convert.convert(model(graph, 17), to=target).model, {"x": x, "s": scale})
    tolerance = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-7}[x.dtype.name]
    np.testing.assert_allclose(got[0], normalised(x, scale, epsilon, centred=True), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 200.0])
def test_roots_of_float16_are_found_in_float(magnitude: float) -> None:
    x, scale = (NOISE * magnitude).astype(np.float16), np.ones(64, np.float16)
    graph = "(float16[4,64] x, float16[64] s) => (float16[4,64] y) { y = RMSNormalization<epsilon=1e-9>(x, s) }"
    got = run(onnx_convert.convert(model(graph, 23), to=13).model, {"x": x, "s": scale})
    assert compare([normalised(x, scale, 1e-9, centred=False)], got) is None


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("target", [16, 10, 9])
def test_statistics_have_their_shape_where_the_rank_is_unknown(axis: int, target: int) -> None:
    graph = (
        "(float[2,3,4] x, int64[r] n, float s) => (float[a,b,c] y, float[a,b,c] m, float[a,b,c] d) "
        f"{{ z = Reshape(x, n) y, m, d = LayerNormalization<axis={axis}>(z, s) }}"
    )
    x = NOISE.ravel()[:24].astype(np.float32).reshape(2, 3, 4)
    result = onnx_convert.convert(model(graph, 17), to=target).model
    validate(result)
    _, mean, inverse = run(result, {"x": x, "n": np.array(x.shape), "s": np.array(1, np.float32)})
    axes = tuple(range(axis % 3, 3))
    np.testing.assert_allclose(mean, x.mean(axis=axes, keepdims=True), atol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(x.var(axis=axes, keepdims=True) + 1e-5), rtol=1e-5)


def test_statistics_in_bfloat16() -> None:
    graph = (
        "(float[2,8] x, float[8] s) => (float[2,8] y, bfloat16[2,1] m) "
        "{ y, m = LayerNormalization<stash_type=16>(x, s) }"
    )
    result = onnx_convert.convert(model(graph, 17), to=16).model
    validate(result)
    assert [node.op_type for node in result.graph.node].count("Cast") == 1  # computed in float, handed out in bfloat16


@pytest.mark.parametrize("shape", [(0, 8), (3, 0, 2)])
def test_nothing_is_normalised(shape: tuple[int, ...]) -> None:
    dims = ",".join("abc"[: len(shape)])
    graph = f"(float[{dims}] x, float[n] s) => (float[{dims}] y) {{ y = RMSNormalization(x, s) }}"
    feeds = {"x": np.zeros(shape, np.float32), "s": np.ones(shape[-1], np.float32)}
    (y,) = run(onnx_convert.convert(model(graph, 23), to=13).model, feeds)
    assert y.shape == shape


def test_equal_elements_give_zeros() -> None:
    graph = "(float16[1,2,4,4] x) => (float16[1,2,4,4] y) { y = MeanVarianceNormalization(x) }"
    (y,) = run(onnx_convert.convert(model(graph, 13), to=8).model, {"x": np.full((1, 2, 4, 4), 300, np.float16)})
    assert not y.any()
