# SPDX-License-Identifier: Apache-2.0
"""DFT: the axis becomes an input (20)."""

from __future__ import annotations

from boundaries import Row, each_of, rewrites

# ---- DFT


def dft(attributes: str = "", x: str = "2,4,6,1", y: str = "2,4,6,2", axis: str | None = None, length: str = "") -> str:
    """Returns a graph with one DFT, its axis and length as constants."""
    given = [f"int64 {name} = {{{value}}}" for name, value in (("n", length), ("a", axis)) if value]
    inputs = ["x", "n" if length else '""', *(["a"] if axis else [])]
    written = f"<{attributes}>" if attributes else ""
    return f"(float[{x}] x) => (float[{y}] y) <{', '.join(given)}> {{ y = DFT{written}({', '.join(inputs)}) }}"


FOURIER: list[Row] = [
    rewrites("DFT", 17, 20, dft(), into=["DFT"]),
    rewrites("DFT axis", 17, 20, dft("axis=2,onesided=1", y="2,4,4,2"), into=["DFT"]),
    rewrites("DFT length", 17, 20, dft("axis=-2,inverse=1", x="2,4,6,2", y="2,4,5,2", length="5"), into=["DFT"]),
    rewrites("DFT", 20, 17, dft(), into=["DFT"]),
    rewrites("DFT axis", 20, 17, dft(axis="1"), into=["DFT"]),
    rewrites("DFT negative axis", 20, 17, dft("onesided=1", y="2,3,6,2", axis="-3"), into=["DFT"]),
    rewrites("DFT length", 20, 17, dft(axis="2", length="9", y="2,4,9,2"), into=["DFT"]),
    *(
        rewrites(
            f"DFT of axis {axis} at run time",
            20,
            17,
            '(float[2,4,6,1] x, int64 a) => (float[?,?,?,2] y) { y = DFT<onesided=1>(x, "", a) }',
            feeds={"a": axis},
        )
        for axis in (0, 1, 2, -2, -4)
    ),
]


ROWS = FOURIER

test_rows = each_of(ROWS)
