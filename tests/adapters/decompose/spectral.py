# SPDX-License-Identifier: Apache-2.0
"""DFT, STFT, the windows and MelWeightMatrix (17) where they do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from texts import model, operators

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import run, run_reference

# ---- DFT


def dft(attributes: str, x: str, y: str, length: str = "") -> str:
    """Returns a graph with one DFT."""
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
    """Returns a graph with one STFT in steps of 3; frames have 4 elements. Inference takes an absent `onesided` for
    0."""
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

# Of a window only the middle is a whole number, which must not be cut off to 0.
WHOLE: list[Row] = [
    rewrites(f"{operator} of integers{when}", 17, 16, graph.format(operator), feeds=feeds)
    for operator in ("HannWindow", "HammingWindow", "BlackmanWindow")
    for when, feeds, graph in (
        ("", {}, "() => (int32[6] y) <int64 n = {{6}}> {{ y = {}<output_datatype=6>(n) }}"),
        (" at run time", {"n": 2}, "(int64 n) => (int64[?] y) {{ y = {}<output_datatype=7>(n) }}"),
    )
] + [
    rewrites(
        "HannWindow of doubles at run time",
        17,
        16,
        "(int64 n) => (double[?] y) { y = HannWindow<output_datatype=11>(n) }",
        feeds={"n": 6},
    )
]

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


EDGES: list[Row] = [
    rewrites(
        f"DFT of no signals of {sizes['P']} parts{length and ', made longer'}",
        20,
        target,
        f"(float[N,L,P] x) => (float[?,?,2] y) <int64 a = {{1}}{length}> {{ y = DFT(x, {'n' if length else ''}, a) }}",
        dims=sizes,
    )
    for target in (15, 9)
    for length in ("", ", int64 n = {4}")
    for sizes in ({"N": 0, "L": 6, "P": 1}, {"N": 0, "L": 3, "P": 2})
    if sizes["P"] == 1 or length
] + [
    rewrites(
        f"STFT of no signals, {step}",
        17,
        15,
        f"(float[N,L,1] x, float[8] w{', int64 s' * (step == 'step at run time')}) => (float[?,?,?,2] y) "
        f"{'<int64 s = {4}>' * (step == 'constant step')} {{ y = STFT<onesided=1>(x, s, w) }}",
        feeds={"s": 4} if step == "step at run time" else {},
        dims={"N": 0, "L": 16},
    )
    for step in ("constant step", "step at run time")
]

ROWS = [*WHOLE, *FOURIER, *FRAMES, *WINDOWS, *MEL, *EDGES]

test_rows = each_of(ROWS)


RANDOM = np.random.default_rng(0)


def pairs(numbers: np.ndarray) -> np.ndarray:
    """Returns complex numbers as real and imaginary parts."""
    return np.stack([numbers.real, numbers.imag], axis=-1)


def signal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def transformed(x: np.ndarray, y: str, attributes: str = "", length: int | None = None, target: int = 13) -> np.ndarray:
    dtype = {"float32": "float", "float64": "double"}.get(x.dtype.name, x.dtype.name)
    given, n = (f"<int64 n = {{{length}}}> ", ", n") if length is not None else ("", "")
    shape = ",".join(map(str, x.shape))
    graph = f"({dtype}[{shape}] x) => ({dtype}[{y}] y) {given}{{ y = DFT{attributes and f'<{attributes}>'}(x{n}) }}"
    return np.asarray(run(onnx_convert.convert(model(graph, 17), to=target).model, {"x": x})[0])


@pytest.mark.parametrize(("dtype", "error"), [("float16", 2e-3), ("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("length", [1, 2, 97, 1000])
def test_precision(length: int, dtype: str, error: float) -> None:
    x = signal(2, length, 1, dtype=dtype)
    expected = pairs(np.fft.fft(x[..., 0].astype(np.float64), axis=1))
    np.testing.assert_allclose(transformed(x, f"2,{length},2"), expected, atol=error * np.abs(expected).max())


@pytest.mark.parametrize("length", [1, 2, 3, 6, 7, 8, 9, 16])
def test_back_to_reals(length: int) -> None:
    """Of 4 bins, fewer and more; onnxruntime pads the missing ones otherwise than numpy and the reference do."""
    x = signal(2, 4, 2)
    expected = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=length, axis=1)[..., None]
    got = transformed(x, f"2,{length},1", "inverse=1,onesided=1", length)
    np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize(("inverse", "function"), [(0, np.fft.fft), (1, np.fft.ifft)])
def test_a_length_whose_matrix_would_be_huge(inverse: int, function: type[np.ufunc]) -> None:
    x = signal(1, 2048, 2)
    expected = pairs(function(x[..., 0] + 1j * x[..., 1].astype(np.float64), axis=1))
    got = transformed(x, "1,2048,2", f"inverse={inverse}")
    np.testing.assert_allclose(got, expected, atol=4e-6 * np.abs(expected).max())


def test_huge_matrices_are_not_written() -> None:
    graph = "(float[1,2048,2] x) => (float[1,2048,2] y) { y = DFT(x) }"
    assert onnx_convert.convert(model(graph, 17), to=16).model.ByteSize() < 10_000


def test_a_signal_of_any_length_is_a_convolution() -> None:
    graph = "(float[B,L,1] x, float[400] w) => (float[B,F,201,2] y) <int64 s = {160}> { y = STFT<onesided=1>(x, s, w) }"
    source = model(graph, 17)
    result = onnx_convert.convert(source, to=13).model
    assert operators(result) == ["Mul", "Transpose", "Conv", "Transpose", "Reshape"]
    feeds = {"x": signal(1, 2000, 1), "w": np.hanning(400).astype(np.float32)}
    np.testing.assert_allclose(run(result, feeds)[0], run_reference(source, feeds)[0], atol=5e-5)


def test_absent_onesided_is_one_sided() -> None:
    graph = '(float[1,16,1] x, int64 s, int64 n) => (float[?,?,?,2] y) { y = STFT(x, s, "", n) }'
    feeds = {"x": signal(1, 16, 1), "s": np.array(4), "n": np.array(8)}
    (y,) = run(onnx_convert.convert(model(graph, 17), to=13).model, feeds)
    assert y.shape == (1, 3, 5, 2)


FORMULAS = {
    "HannWindow": lambda t: 0.5 - 0.5 * np.cos(t),
    "HammingWindow": lambda t: 25 / 46 - 21 / 46 * np.cos(t),
    "BlackmanWindow": lambda t: 0.42 - 0.5 * np.cos(t) + 0.08 * np.cos(2 * t),
}


@pytest.mark.parametrize("operator", FORMULAS)
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("size", [0, 1, 2, 51])
def test_windows_in_double(operator: str, periodic: int, size: int) -> None:
    call = f"{operator}<periodic={periodic},output_datatype=11>(n)"
    graph = f"() => (double[{size}] y) <int64 n = {{{size}}}> {{ y = {call} }}"
    (y,) = run(onnx_convert.convert(model(graph, 17), to=9).model, {})
    with np.errstate(all="ignore"):
        turns = 2 * np.pi * np.arange(size) / np.float64(size if periodic else size - 1)
    np.testing.assert_allclose(y, FORMULAS[operator](turns), atol=1e-15)


@pytest.mark.parametrize("edges", [(0.0, 8000.0), (20.0, 4000.0)])
@pytest.mark.parametrize("constant", [True, False])
def test_mel_weights(edges: tuple[float, float], *, constant: bool) -> None:
    """A narrow band whose edges and centre fall together too."""
    lower, upper = edges
    values = {"a": np.array(40), "b": np.array(256), "c": np.array(16000)}
    values |= {"d": np.array(lower, np.float32), "e": np.array(upper, np.float32)}
    head, nodes = "int64 a, int64 b, int64 c, float d, float e", "{ y = MelWeightMatrix(a, b, c, d, e) }"
    free = f"({head}) => (float[?,?] y) {nodes}"
    known = (
        f"() => (float[129,40] y) <int64 a = {{40}}, int64 b = {{256}}, int64 c = {{16000}}, "
        f"float d = {{{lower}}}, float e = {{{upper}}}> {nodes}"
    )
    source, feeds = model(known if constant else free, 17), {} if constant else values
    (y,) = run(onnx_convert.convert(source, to=10).model, feeds)
    np.testing.assert_allclose(y, run(source, feeds)[0], atol=1e-6)
