# SPDX-License-Identifier: Apache-2.0
"""What operators on signals (17) become below."""

from __future__ import annotations

from boundaries.rows import Row, rewrites

# ---- DFT


def dft(attributes: str, x: str, y: str, length: str = "") -> str:
    """A graph with one DFT."""
    given, n = (f"<int64 n = {{{length}}}> ", ", n") if length else ("", "")
    return f"(float[{x}] x) => (float[{y}] y) {given}{{ y = DFT{attributes and f'<{attributes}>'}(x{n}) }}"


FOURIER: list[Row] = [
    *(
        row
        for target in (16, 12, 10, 9, 7)
        for row in (
            rewrites("DFT of reals", 17, target, dft("", "2,5,1", "2,5,2")),
            rewrites("DFT of complex numbers", 17, target, dft("axis=2", "2,3,6,2", "2,3,6,2")),
            rewrites("DFT of another axis", 17, target, dft("axis=-3", "2,6,3,2", "2,6,3,2")),
            rewrites("DFT one-sided", 17, target, dft("onesided=1", "2,6,3,1", "2,4,3,2")),
            rewrites("DFT inverse", 17, target, dft("inverse=1", "2,8,2", "2,8,2")),
        )
    ),
    *(
        row
        for target in (16, 9)
        for row in (
            rewrites("DFT of a longer signal", 17, target, dft("", "2,5,1", "2,8,2", "8")),
            rewrites("DFT of a shorter signal", 17, target, dft("", "2,5,2", "2,3,2", "3")),
            rewrites("DFT back to reals", 17, target, dft("inverse=1,onesided=1", "2,5,2", "2,8,1")),
            rewrites("DFT back to fewer reals", 17, target, dft("inverse=1,onesided=1", "2,4,2", "2,4,1", "4")),
            rewrites(
                "DFT of a length at run time",
                17,
                target,
                "(float[2,5,2] x, int64 n) => (float[2,?,2] y) { y = DFT(x, n) }",
                feeds={"n": 7},
            ),
        )
    ),
    rewrites("DFT of the last axis", 20, 13, "(float[2,4,3,1] x) => (float[2,4,3,2] y) { y = DFT(x) }"),
]

# ---- STFT


def stft(
    attributes: str = "onesided=1", x: str = "2,16,1", y: str = "2,5,3,2", *, window: bool = True, length: str = ""
) -> str:
    """A graph with one STFT in steps of 3; frames have 4 elements. Inference takes an absent `onesided` for 0."""
    given, more = (", float[4] w", "w") if window else ("", '""')
    n = f", int64 n = {{{length}}}" if length else ""
    inputs = ["x", "s", more, *(["n"] if length else [])]
    inputs = inputs if length or window else inputs[:2]
    return (
        f"(float[{x}] x{given}) => (float[{y}] y) <int64 s = {{3}}{n}> "
        f"{{ y = STFT{attributes and f'<{attributes}>'}({', '.join(inputs)}) }}"
    )


FRAMES: list[Row] = [
    row
    for target in (16, 12, 10, 9)
    for row in (
        rewrites("STFT", 17, target, stft()),
        rewrites("STFT two-sided", 17, target, stft("onesided=0", y="2,5,4,2")),
        rewrites("STFT of complex numbers", 17, target, stft("onesided=0", "2,16,2", "2,5,4,2", length="4")),
        rewrites("STFT without window", 17, target, stft(window=False, length="4")),
        rewrites("STFT of one frame", 17, target, stft(x="2,4,1", y="2,1,3,2", window=False, length="4")),
        rewrites(
            "STFT in steps at run time",
            17,
            target,
            "(float[2,16,1] x, int32 s, float[4] w) => (float[2,?,?,2] y) { y = STFT<onesided=1>(x, s, w) }",
            feeds={"s": 5},
        ),
    )
]

# ---- windows, MelWeightMatrix

# Evaluators have windows in different precisions, and an attribute tells their dtype: they agree on float16.
WINDOWS: list[Row] = [
    rewrites(f"{operator} {name}", 17, target, graph.format(operator, periodic), feeds=feeds)
    for operator in ("HannWindow", "HammingWindow", "BlackmanWindow")
    for target in (16, 10, 9, 7)
    for periodic in (0, 1)
    for name, feeds, graph in (
        (
            f"{periodic}",
            {},
            "() => (float16[6] y) <int64 n = {{6}}> {{ z = {}<periodic={}>(n) y = Cast<to=10>(z) }}",
        ),
        (
            f"at run time {periodic}",
            {"n": 7},
            "(int32 n) => (float16[?] y) {{ z = {}<periodic={}>(n) y = Cast<to=10>(z) }}",
        ),
    )
]
WEIGHTS = "{ z = MelWeightMatrix(a, b, c, d, e) y = Cast<to=10>(z) }"
KNOWN = "<int64 a = {8}, int64 b = {16}, int64 c = {8192}, float d = {0}, float e = {4096}>"
MEL: list[Row] = [
    rewrites(f"MelWeightMatrix {name}", 17, target, f"{graph} {WEIGHTS}", feeds=feeds)
    for target in (16, 10, 9, 8)
    for name, feeds, graph in (
        ("of constants", {}, f"() => (float16[9,8] y) {KNOWN}"),
        (
            "at run time",
            {"a": 8, "b": 16, "c": 8192, "d": 0, "e": 4096},
            "(int64 a, int64 b, int64 c, float d, float e) => (float16[?,?] y)",
        ),
    )
]

ROWS = [*FOURIER, *FRAMES, *WINDOWS, *MEL]
