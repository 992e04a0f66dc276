# SPDX-License-Identifier: Apache-2.0
"""Numbers at which a careless decomposition of an elementwise operator goes wrong: near 0, far out, not finite."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_convert
from oracle import run

Function = Callable[[np.ndarray], np.ndarray]
NUMPY = {"float": np.float32, "double": np.float64, "float16": np.float16}


NEWEST = onnx.defs.onnx_opset_version()


def model(opset: int, graph: str) -> ModelProto:
    if opset > NEWEST:
        pytest.skip(f"this onnx ends at opset {NEWEST}")
    parsed = onnx.parser.parse_graph(f"g {graph}")
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(parsed, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))


def converted(call: str, dtype: str, opset: int, target: int, x: np.ndarray) -> np.ndarray:
    source = model(opset, f"({dtype}[N] x) => ({dtype}[N] y) {{ y = {call}(x) }}")
    (y,) = run(onnx_convert.convert(source, to=target).model, {"x": x})
    return np.asarray(y)


def sizes(dtype: str, low: float, high: float, count: int = 400) -> np.ndarray:
    """Magnitudes from low to high, evenly by their logarithms, as float32 or the like."""
    return np.geomspace(low, high, count).astype(NUMPY[dtype])


# ---- relative errors

TINY = {"float": 1e-30, "double": 1e-200, "float16": 1e-3}
HUGE = {"float": 3.4e38, "double": 1.7e308, "float16": 65000.0}
CLOSE = {"float": 2e-6, "double": 1e-14, "float16": 1e-3}
OVERFLOW = {"float": 88.9, "double": 710.0, "float16": 11.7}  # exp of this still fits when halved


def _both_signs(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, -x])


DOMAINS: dict[str, tuple[Function, Callable[[str], np.ndarray]]] = {
    "Sinh": (np.sinh, lambda t: _both_signs(sizes(t, TINY[t], OVERFLOW[t]))),
    "Cosh": (np.cosh, lambda t: _both_signs(sizes(t, TINY[t], OVERFLOW[t]))),
    "Asinh": (np.arcsinh, lambda t: _both_signs(sizes(t, TINY[t], HUGE[t]))),
    "Acosh": (np.arccosh, lambda t: np.concatenate([1 + sizes(t, 1e-3, 1), sizes(t, 1, HUGE[t])])),
    "Atanh": (np.arctanh, lambda t: _both_signs(sizes(t, TINY[t], 0.999))),
}


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("op", DOMAINS)
def test_hyperbolic_functions_keep_their_digits(op: str, dtype: str) -> None:
    function, domain = DOMAINS[op]
    x = domain(dtype)
    wide = x.astype(np.float64) if dtype != "double" else x
    np.testing.assert_allclose(converted(op, dtype, 9, 8, x), function(wide), rtol=CLOSE[dtype])


@pytest.mark.parametrize("op", DOMAINS)
def test_hyperbolic_functions_beyond_the_numbers(op: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, -3.0], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(converted(op, "float", 9, 8, x), DOMAINS[op][0](x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 4.0])
def test_celu_does_not_overflow(alpha: float, dtype: str) -> None:
    x = _both_signs(sizes(dtype, TINY[dtype], HUGE[dtype]))
    opset = 12 if dtype == "float" else 28
    wide = x.astype(np.float64)
    expected = np.maximum(wide, 0) + np.minimum(0, alpha * np.expm1(np.minimum(wide, 0) / alpha))
    got = converted(f"Celu<alpha={alpha}>", dtype, opset, 11, x)
    np.testing.assert_array_equal(got[x > 0], x[x > 0])
    np.testing.assert_allclose(got[x <= 0], expected[x <= 0], rtol=1e-3, atol=1e-6)


def test_celu_of_double_is_not_rounded_to_float() -> None:
    x = np.linspace(-3, 3, 31)
    expected = np.maximum(x, 0) + np.minimum(0, 0.5 * np.expm1(x / 0.5))
    np.testing.assert_allclose(converted("Celu<alpha=0.5>", "double", 28, 27, x), expected, rtol=1e-14)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float", 1e-6), ("double", 1e-14)])
def test_gelu_by_tanh_means_the_text(dtype: str, tolerance: float) -> None:
    x = np.concatenate([np.linspace(-5, 5, 101), [1e3, -1e3, 1e30, -1e30]]).astype(NUMPY[dtype])
    wide = x.astype(np.float64)
    expected = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    got = converted('Gelu<approximate="tanh">', dtype, 20, 13, x)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("call", ["Swish", "Mish", "HardSwish"])
def test_activations_far_out(call: str) -> None:
    x = np.array([1e4, -1e4, 100.0, -100.0, 3e38, -3e38], np.float32)
    got = converted(call, "float", {"Swish": 24, "Mish": 18, "HardSwish": 14}[call], 13, x)
    np.testing.assert_allclose(got, np.maximum(x, 0), atol=1e-30)


# ---- bits that must not change

FLOATS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3e38, -1e-45], np.float32)


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    """NaN payloads apart."""
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


@pytest.mark.parametrize("target", [8, 7, 6])
def test_where_gives_what_it_chooses(target: int) -> None:
    source = model(9, "(bool[N,1] c, float[M] x, float[M] y) => (float[N,M] z) { z = Where(c, x, y) }")
    feeds = {"c": np.array([[True], [False]]), "x": FLOATS, "y": FLOATS[::-1].copy()}
    (got,) = run(onnx_convert.convert(source, to=target, exact=True).model, feeds)
    same_bits(got, np.stack([feeds["x"], feeds["y"]]))


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("target", [8, 7])
def test_round_is_half_to_even(dtype: str, target: int) -> None:
    x = np.concatenate([np.arange(-40, 41) / 4, np.random.default_rng(0).standard_normal(500) * 100, FLOATS[:-2]])
    big = {"float": 2.0**23, "double": 2.0**52, "float16": 2.0**10}[dtype]
    x = _both_signs(np.concatenate([x, [big - 0.5, big, big + 1, 2 * big - 1, 0.49999997]]).astype(NUMPY[dtype]))
    same_bits(converted("Round", dtype, 11, target, x), np.round(x))


@pytest.mark.parametrize("target", [9, 8, 7])
def test_remainder_of_floats_is_exact(target: int) -> None:
    random = np.random.default_rng(0)
    a = np.concatenate([random.standard_normal(2000) * 1e4, [3.0, -3.0, -4.0, 0.0, np.inf, 2.0]]).astype(np.float32)
    b = np.concatenate([random.standard_normal(2000), [np.inf, -np.inf, 2.0, 3.0, 2.0, np.nan]]).astype(np.float32)
    kept = ~(np.abs(a) >= 2.0**28 * np.abs(b)) | np.isinf(a)
    a, b = a[kept], b[kept]
    source = model(13, "(float[N] a, float[N] b) => (float[N] y) { y = Mod<fmod=1>(a, b) }")
    with pytest.raises(onnx_convert.RefusedError, match=re.escape("2**28")):
        onnx_convert.convert(source, to=target)
    result = onnx_convert.convert(source, to=target, allow=["conditional"]).model
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(result, {"a": a, "b": b})[0], np.fmod(a, b))


def test_remainder_of_float16_is_exact_whatever_the_quotient() -> None:
    values = np.array([6e-8, -3.1e-5, 0.1, -1.0, 3.0, 777.0, 65504.0, np.inf], np.float16)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    source = model(13, "(float16[N] a, float16[N] b) => (float16[N] y) { y = Mod<fmod=1>(a, b) }")
    (got,) = run(onnx_convert.convert(source, to=9, exact=True).model, {"a": a, "b": b})
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, np.fmod(a, b))


BITWISE = {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("op", BITWISE)
def test_every_bit_is_combined(op: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    a, b = np.random.default_rng(0).integers(limits.min, limits.max, (2, 300), dtype=dtype, endpoint=True)
    a[:4], b[:4] = [limits.min, limits.max, limits.min, 0], [limits.max, limits.max, limits.min, limits.max]
    source = model(18, f"({dtype}[N] a, {dtype}[N] b) => ({dtype}[N] y) {{ y = Bitwise{op}(a, b) }}")
    (got,) = run(onnx_convert.convert(source, to=13, exact=True).model, {"a": a, "b": b})
    np.testing.assert_array_equal(got, BITWISE[op](a, b))


PATTERNS = {
    16: np.arange(2**16, dtype=np.uint16),
    32: np.concatenate(
        [
            np.random.default_rng(0).integers(0, 2**32, 20000, dtype=np.uint32),
            (np.arange(512, dtype=np.uint32) << 23)[:, None].repeat(3, 1).ravel() + np.tile([0, 1, 2**23 - 1], 512),
        ]
    ).astype(np.uint32),
    64: np.concatenate(
        [
            np.random.default_rng(0).integers(0, 2**64, 20000, dtype=np.uint64),
            np.array([0, 1, 2**52 - 1, 2**52, 0x7FF << 52, 0xFFF << 52, 1 << 63, (0x7FF << 52) + 1], dtype=np.uint64),
        ]
    ),
}


@pytest.mark.parametrize("target", [25, 11])
@pytest.mark.parametrize(
    ("start", "stop"),
    [
        *(("int16", "float16"), ("uint16", "float16"), ("int32", "float"), ("uint32", "float"), ("int64", "double")),
        *(("float16", "int16"), ("float16", "uint16"), ("float", "int32"), ("float", "uint32")),
    ],
)
def test_bits_of_floats(start: str, stop: str, target: int) -> None:
    types = [np.dtype(NUMPY.get(name, name)) for name in (start, stop)]
    patterns = PATTERNS[types[0].itemsize * 8]
    x, expected = (patterns.view(dtype) for dtype in types)
    number = helper.np_dtype_to_tensor_dtype(types[1])
    source = model(26, f"({start}[N] x) => ({stop}[N] y) {{ y = BitCast<to={number}>(x) }}")
    (got,) = run(onnx_convert.convert(source, to=target, exact=True).model, {"x": x})
    if types[1].kind == "f":
        same_bits(got, expected)
    else:
        np.testing.assert_array_equal(got[~np.isnan(x)], expected[~np.isnan(x)])
        assert np.isnan(got[np.isnan(x)].view(types[0])).all()
