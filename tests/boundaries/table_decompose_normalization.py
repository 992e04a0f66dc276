# SPDX-License-Identifier: Apache-2.0
"""What LayerNormalization (17), RMSNormalization (23) and MeanVarianceNormalization (9) become below."""

from __future__ import annotations

from boundaries.rows import Row, rewrites

LAYER = ["ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt", "Div", "Mul"]


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
    rewrites("LayerNormalization", 17, 16, layer(), into=LAYER),
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
