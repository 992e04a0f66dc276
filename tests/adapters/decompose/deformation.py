# SPDX-License-Identifier: Apache-2.0
"""DeformConv (19) where it does not exist."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, refuses, rewrites
from oracle import run, validate

ALL = {"expand": "all"}
WEIGHTS = {"dims": "weights", "ranks": "input W"}


def conv(x: str, w: str, offset: str, y: str, further: str = "", inputs: str = "", attributes: str = "") -> str:
    return (
        f"(float[{x}] x, float[{w}] w, float[{offset}] o{inputs}) => (float[{y}] y) "
        f"{{ y = DeformConv{attributes and f'<{attributes}>'}(x, w, o{further}) }}"
    )


ROWS: list[Row] = [
    rewrites(
        "DeformConv of no image",
        19,
        18,
        "(float[N,1,H,W] x, float[N,2,?,?] o) => (float[N,1,?,?] y) <float[1,1,1,1] w = {1}> "
        "{ y = DeformConv(x, w, o) }",
        feeds={"o": np.zeros((0, 2, 3, 4))},
        dims={"N": 0, "H": 3, "W": 4},
        options=ALL,
        may_refuse=WEIGHTS,
    ),
    *(
        rewrites(name, source, target, graph, options=ALL, may_refuse=WEIGHTS)
        for source, target in ((19, 18), (22, 13), (19, 11), (19, 9), (19, 8))
        for name, graph in (
            ("DeformConv", conv("1,1,3,3", "1,1,2,2", "1,8,4,4", "1,1,4,4", attributes="pads=[1,1,1,1]")),
            (
                "DeformConv with mask and bias",
                conv("2,2,5,4", "3,2,2,3", "2,12,4,2", "2,3,4,2", ", b, m", ", float[3] b, float[2,6,4,2] m"),
            ),
            (
                "DeformConv in groups",
                conv(
                    "2,4,6,6",
                    "2,2,2,2",
                    "2,16,2,3",
                    "2,2,2,3",
                    attributes="group=2,offset_group=2,strides=[2,2],dilations=[2,1],pads=[0,0,0,1]",
                ),
            ),
            (
                "DeformConv without a bias",
                conv("1,2,3,3", "2,2,1,1", "1,2,3,3", "1,2,3,3", ", , m", ", float[1,1,3,3] m"),
            ),
        )
    ),
    *(
        rewrites(
            "DeformConv of any images",
            19,
            target,
            "(float[N,4,H,W] x, float[N,16,P,Q] o) => (float[N,2,P,Q] y) <float[2,2,2,2] w = "
            "{1,2,3,4,5,6,7,8,0.5,-1,-2,1,2,-1,0,1}> "
            "{ y = DeformConv<group=2,offset_group=2,pads=[1,0,0,1]>(x, w, o) }",
            dims={"N": 2, "H": 4, "W": 5, "P": 4, "Q": 5},
            options=ALL,
        )
        for target in (18, 12, 9)
    ),
    refuses(
        "DeformConv unasked",
        19,
        18,
        "(float[1,1,3,3] x, float[1,8,2,2] o) => (float[1,1,2,2] y) <float[1,1,2,2] w = {1,2,3,4}> "
        "{ y = DeformConv(x, w, o) }",
        because="large",
    ),
]


test_rows = each_of(ROWS)


INF = float("inf")


def computed(graph: str, source: int, target: int, feeds: dict[str, Any]) -> list[Any]:
    """Returns what the model computes at the target."""
    result = onnx_convert.convert(model(graph, source), to=target, expand="all").model
    validate(result)
    return run(result, feeds)


# ---- DeformConv


def deformed(
    x: np.ndarray, w: np.ndarray, offset: np.ndarray, mask: np.ndarray, pads: list[int], groups: int, offsets: int
) -> np.ndarray:
    """By the text, for any number of axes, with strides 2."""
    axes, (filters, channels, *kernel) = w.ndim - 2, w.shape
    y = np.zeros((x.shape[0], filters, *offset.shape[2:]))
    moves = offset.reshape(x.shape[0], offsets, *kernel, axes, *offset.shape[2:])
    weights = mask.reshape(x.shape[0], offsets, *kernel, *offset.shape[2:])
    for index in np.ndindex(*y.shape):
        image, filter_, *place = index
        for element in np.ndindex(channels, *kernel):
            channel = filter_ // (filters // groups) * channels + element[0]
            group = channel // (x.shape[1] // offsets)
            at = [
                p * 2 + k - pad + moves[(image, group, *element[1:], axis, *place)]
                for axis, (p, k, pad) in enumerate(zip(place, element[1:], pads[:axes], strict=True))
            ]
            value = 0.0
            for corner in product((0, 1), repeat=axes):
                where = [int(np.floor(a)) + c for a, c in zip(at, corner, strict=True)]
                if all(0 <= i < size for i, size in zip(where, x.shape[2:], strict=True)):
                    near = np.prod([1 - abs(a - i) for a, i in zip(at, where, strict=True)])
                    value += near * x[(image, channel, *where)]
            y[index] += value * w[(filter_, *element)] * weights[(image, group, *element[1:], *place)]
    return y


@pytest.mark.parametrize("target", [18, 11, 8])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_any_number_of_axes(axes: int, target: int) -> None:
    random = np.random.default_rng(axes)
    size, kernel, result, pads = (
        [5, 4, 6][:axes],
        [2, 3, 2][:axes],
        [3, 2, 3][:axes],
        [1, 1, 0][:axes] + [0, 1, 0][:axes],
    )
    elements = int(np.prod(kernel))
    feeds = {
        "x": random.standard_normal((2, 4, *size)),
        "w": random.standard_normal((6, 2, *kernel)),
        "o": random.standard_normal((2, 2 * elements * axes, *result)) * 2,
        "m": random.standard_normal((2, 2 * elements, *result)),
    }
    feeds["o"][0, 0, ...] = 1e10  # far outside
    feeds["o"][0, 1, ...] = -INF
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    formals = ", ".join(f"float[{','.join(map(str, value.shape))}] {name}" for name, value in feeds.items())
    graph = (
        f"({formals}) => (float[{','.join('?' * (axes + 2))}] y) "
        f"{{ y = DeformConv<group=2,offset_group=2,strides={[2] * axes},pads={pads}>(x, w, o, , m) }}"
    )
    (y,) = computed(graph, 19, target, feeds)
    finite = np.clip(feeds["o"].astype(np.float64), -1e6, 1e6)
    wanted = deformed(feeds["x"], feeds["w"], finite, feeds["m"], pads, 2, 2)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_a_point_outside_sees_nothing_of_an_infinite_image() -> None:
    graph = (
        "(float[1,1,2,2] x, float[1,2,2,2] o) => (float[1,1,2,2] y) <float[1,1,1,1] w = {1}> "
        "{ y = DeformConv(x, w, o) }"
    )
    outside = np.full((1, 2, 2, 2), [[[-5]], [[7]]], dtype=np.float32)
    (y,) = computed(graph, 19, 13, {"x": np.full((1, 1, 2, 2), INF, np.float32), "o": outside})
    np.testing.assert_array_equal(y, np.zeros((1, 1, 2, 2)))
