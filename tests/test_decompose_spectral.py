# SPDX-License-Identifier: Apache-2.0
"""Transforms against numpy: how precise they are, lengths of every kind, and matrices that are not written down."""

from __future__ import annotations

import numpy as np
import pytest
from texts import model, operators

import onnx_convert
from oracle import run, run_reference

RANDOM = np.random.default_rng(0)


def pairs(numbers: np.ndarray) -> np.ndarray:
    """Complex numbers as real and imaginary parts."""
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


WINDOWS = {
    "HannWindow": lambda t: 0.5 - 0.5 * np.cos(t),
    "HammingWindow": lambda t: 25 / 46 - 21 / 46 * np.cos(t),
    "BlackmanWindow": lambda t: 0.42 - 0.5 * np.cos(t) + 0.08 * np.cos(2 * t),
}


@pytest.mark.parametrize("operator", WINDOWS)
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("size", [0, 1, 2, 51])
def test_windows_in_double(operator: str, periodic: int, size: int) -> None:
    call = f"{operator}<periodic={periodic},output_datatype=11>(n)"
    graph = f"() => (double[{size}] y) <int64 n = {{{size}}}> {{ y = {call} }}"
    (y,) = run(onnx_convert.convert(model(graph, 17), to=9).model, {})
    with np.errstate(all="ignore"):
        turns = 2 * np.pi * np.arange(size) / np.float64(size if periodic else size - 1)
    np.testing.assert_allclose(y, WINDOWS[operator](turns), atol=1e-15)


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
