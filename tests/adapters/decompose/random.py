# SPDX-License-Identifier: Apache-2.0
"""Bernoulli (15) and Multinomial (7) where they do not exist: the numbers are others, the distribution is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from texts import model

import onnx_convert
from oracle import evaluate, run, validate


def converted(graph: str, source: int, target: int, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_convert.convert(model(graph, source), to=target, **options).model
    validate(result)
    return result


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
