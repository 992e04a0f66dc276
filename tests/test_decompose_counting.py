# SPDX-License-Identifier: Apache-2.0
"""Replacements that count, index and sum: what one row of a table does not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from oracle import all_nodes, evaluate, run, validate

NAN, INF = float("nan"), float("inf")


def converted(graph: str, source: int, target: int, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target, **options).model
    validate(result)
    return result


# ---- Einsum

EQUATIONS = {
    "ab,bc->ac": [(2, 3), (3, 4)],
    "ab,cb->ac": [(2, 3), (4, 3)],
    "ba,bc->ca": [(3, 2), (3, 4)],
    "abc,abd->acd": [(2, 3, 4), (2, 3, 5)],
    "abc,cd,de->abe": [(2, 3, 4), (4, 5), (5, 2)],
    "abcd,ebcd->ae": [(2, 3, 4, 5), (6, 3, 4, 5)],
    "aab->ab": [(3, 3, 2)],
    "abab->": [(2, 3, 2, 3)],
    "ab,ab->": [(2, 3), (2, 3)],
    "ab->ba": [(2, 3)],
    "ab,c->cab": [(2, 3), (4,)],
    "a,b,c->cba": [(2,), (3,), (4,)],
    "...a,a->...": [(2, 3, 4), (4,)],
    "a...,...b->ab...": [(2, 3), (3, 4)],
    "...ab->...ba": [(2, 3, 4)],
    "b...,ba->...a": [(2, 3), (2, 4)],
    "ca,bc": [(3, 2), (4, 3)],
    "abc,ac->b": [(2, 3, 4), (2, 4)],
}


@pytest.mark.parametrize("known", [True, False], ids=["sizes", "ranks"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str, known: bool) -> None:
    shapes = EQUATIONS[equation]
    random = np.random.default_rng(0)
    feeds = {f"x{i}": random.standard_normal(shape).astype(np.float32) for i, shape in enumerate(shapes)}
    wanted = np.einsum(equation, *feeds.values())
    formals = ", ".join(
        f"float[{','.join(map(str, shape) if known else '?' * len(shape))}] x{i}" for i, shape in enumerate(shapes)
    )
    result = f"float[{','.join('?' * wanted.ndim)}] y" if wanted.ndim else "float y"
    graph = f'({formals}) => ({result}) {{ y = Einsum<equation="{equation}">({", ".join(feeds)}) }}'
    (y,) = run(converted(graph, 12, 9), feeds)
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_einsum_stretches_axes_of_length_one() -> None:
    graph = '(float[2,1] a, float[2,3] b) => (float[2] y) { y = Einsum<equation="ij,ij->i">(a, b) }'
    feeds = {"a": np.array([[2], [3]], np.float32), "b": np.arange(6, dtype=np.float32).reshape(2, 3)}
    np.testing.assert_array_equal(run(converted(graph, 12, 11), feeds)[0], [6, 36])


def test_a_diagonal_is_taken_and_not_multiplied_out() -> None:
    graph = '(float[2,2] x) => (float[2] y) { y = Einsum<equation="ii->i">(x) }'
    x = np.array([[1, INF], [NAN, 2]], np.float32)
    np.testing.assert_array_equal(run(converted(graph, 12, 9), {"x": x})[0], [1, 2])


# ---- CumSum


def test_a_sum_sees_nothing_of_what_comes_later() -> None:
    graph = "(float[2,3] x) => (float[2,3] y) <int64 a = {1}> { y = CumSum(x, a) }"
    x = np.array([[1, NAN, 2], [3, 4, INF]], np.float32)
    (y,) = run(converted(graph, 11, 9), {"x": x})
    np.testing.assert_array_equal(y, [[1, NAN, NAN], [3, 7, INF]])


@pytest.mark.parametrize("attributes", ["", "<exclusive=1>", "<reverse=1>", "<exclusive=1, reverse=1>"])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_the_axis_may_be_empty_at_run_time(length: int, attributes: str) -> None:
    graph = f"(float[2,N] x) => (float[2,N] y) <int64 a = {{-1}}> {{ y = CumSum{attributes}(x, a) }}"
    source, result = model(graph, 14), converted(graph, 14, 9)
    x = np.arange(2 * length, dtype=np.float32).reshape(2, length)
    np.testing.assert_array_equal(run(result, {"x": x})[0], run(source, {"x": x})[0])


# ---- indices


@pytest.mark.parametrize("target", [10, 7])
def test_updates_replace_infinities(target: int) -> None:
    graph = "(float[3] x, int64[2] i, float[2] u) => (float[3] y) { y = ScatterElements(x, i, u) }"
    feeds = {
        "x": np.array([INF, NAN, 5], np.float32),
        "i": np.array([0, -1]),
        "u": np.array([NAN, -INF], np.float32),
    }
    np.testing.assert_array_equal(run(converted(graph, 11, target), feeds)[0], [NAN, NAN, -INF])


def test_nothing_is_scattered() -> None:
    graph = "(float[3] x, int64[N] i, float[N] u) => (float[3] y) { y = ScatterElements(x, i, u) }"
    feeds = {"x": np.ones(3, np.float32), "i": np.zeros(0, np.int64), "u": np.zeros(0, np.float32)}
    np.testing.assert_array_equal(run(converted(graph, 11, 8), feeds)[0], [1, 1, 1])


def test_range_counts_beyond_what_float_holds() -> None:
    graph = "(int64 a, int64 b, int64 c) => (int64[N] y) { y = Range(a, b, c) }"
    feeds = {"a": np.array(2**40), "b": np.array(2**40 - 5), "c": np.array(-2)}
    np.testing.assert_array_equal(run(converted(graph, 11, 9), feeds)[0], [2**40, 2**40 - 2, 2**40 - 4])


def test_a_small_mask_is_one_constant() -> None:
    result = converted("(float[8,8] x) => (float[8,8] y) { y = Trilu(x) }", 14, 13)
    assert [node.op_type for node in all_nodes(result)] == ["Where"]


# ---- random numbers


def test_bernoulli_keeps_the_probability() -> None:
    graph = "(float[4,5000] x) => (float[4,5000] y) { y = Bernoulli(x) }"
    result = converted(graph, 15, 13, allow={"conditional"})
    x = np.repeat(np.array([[0.0], [0.1], [0.75], [1.0]], np.float32), 5000, axis=1)
    share = run(result, {"x": x})[0].mean(axis=1)
    np.testing.assert_allclose(share, [0, 0.1, 0.75, 1], atol=0.03)
    assert share[0] == 0
    assert share[-1] == 1


def test_multinomial_keeps_the_probabilities() -> None:
    graph = "(float[2,3] x) => (int32[2,4000] y) { y = Multinomial<sample_size=4000>(x) }"
    result = converted(graph, 7, 6, allow={"conditional"})
    probabilities = np.array([[0.2, 0.3, 0.5], [0.0, 0.9, 0.1]])
    with np.errstate(divide="ignore"):
        x = np.log(probabilities).astype(np.float32)
        (y,) = evaluate(result, {"x": x}).values
    shares = [[(row == label).mean() for label in range(3)] for row in y]
    np.testing.assert_allclose(shares, probabilities, atol=0.04)


@pytest.mark.parametrize(("operator", "opset"), [("Bernoulli", 15), ("Multinomial", 7)])
def test_another_stream_has_to_be_allowed(operator: str, opset: int) -> None:
    output = "float[2,2] y" if operator == "Bernoulli" else "int32[2,1] y"
    with pytest.raises(onnx_convert.RefusedError, match="distribution"):
        converted(f"(float[2,2] x) => ({output}) {{ y = {operator}(x) }}", opset, opset - 1)
