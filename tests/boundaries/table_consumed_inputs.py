# SPDX-License-Identifier: Apache-2.0
"""The operators that lost more than `consumed_inputs` at 6: defaults that changed, and what an input may be."""

from __future__ import annotations

from boundaries.rows import Row, keeps, refuses, rewrites


def _unary(operator: str, attributes: str = "", x: str = "2,3") -> str:
    return f"(float[{x}] x) => (float[{x}] y) {{ y = {operator}{attributes}(x) }}"


EDGES = {"x": [float("inf"), float("-inf"), 2.0, 0.5]}

CLIP: list[Row] = [
    rewrites("Clip to nothing", 1, 6, _unary("Clip", x="4"), into=["Identity"], feeds=EDGES),
    rewrites("Clip from below", 1, 6, _unary("Clip", "<min=0.0>", "4"), into=["Clip"], feeds=EDGES),
    rewrites(
        "Clip from above", 1, 10, _unary("Clip", "<max=1.0, consumed_inputs=[1]>", "4"), into=["Clip"], feeds=EDGES
    ),
    keeps("Clip", 1, 6, _unary("Clip", "<min=0.0, max=1.0>")),
    keeps("Clip", 6, 1, _unary("Clip", "<min=0.0, max=1.0>")),
    rewrites("Clip to finite numbers", 6, 1, _unary("Clip", x="4"), into=["Clip"], feeds=EDGES),
    rewrites("Clip from below", 6, 5, _unary("Clip", "<min=0.0>", "4"), into=["Clip"], feeds=EDGES),
]

SELU: list[Row] = [
    rewrites("Selu", 1, 6, _unary("Selu"), into=["Selu"], options={"exact": True}),
    rewrites("Selu", 6, 1, _unary("Selu"), into=["Selu"], options={"exact": True}),
    rewrites("Selu with alpha", 1, 22, _unary("Selu", "<alpha=1.5, consumed_inputs=[0]>"), into=["Selu"]),
    keeps("Selu spelled out", 1, 6, _unary("Selu", "<alpha=1.5, gamma=1.1>")),
]


def _batch(x: str, attributes: str) -> str:
    return (
        f"(float[{x}] x) => (float[{x}] y) <float[2] s = {{1.5, -1.0}}, float[2] b = {{0.5, 2.0}}, "
        f"float[2] m = {{0.1, -0.2}}, float[2] v = {{1.0, 2.0}}> "
        f"{{ y = BatchNormalization<{attributes}>(x, s, b, m, v) }}"
    )


def _instance(x: str, attributes: str = "") -> str:
    return (
        f"(float[{x}] x, float[2] s, float[2] b) => (float[{x}] y) {{ y = InstanceNormalization{attributes}(x, s, b) }}"
    )


BATCH, INSTANCE = "BatchNormalization", "InstanceNormalization"

NORMALIZATION: list[Row] = [
    rewrites(BATCH, 1, 6, _batch("3,2,4,5", "is_test=1, consumed_inputs=[0,0,0,0,0]"), into=[BATCH]),
    rewrites(BATCH, 6, 1, _batch("3,2,4,5", "is_test=1"), into=[BATCH]),
    refuses(f"{BATCH} of a row", 6, 1, _batch("3,2", "is_test=1"), because="four dimensions"),
    rewrites(INSTANCE, 1, 6, _instance("3,2,4,5", "<consumed_inputs=[0,0,0]>"), into=[INSTANCE]),
    keeps(INSTANCE, 22, 1, _instance("3,2,4,5")),
    refuses(f"{INSTANCE} of three dimensions", 6, 1, _instance("3,2,4"), because="four dimensions"),
]

ROWS = [*CLIP, *SELU, *NORMALIZATION]
