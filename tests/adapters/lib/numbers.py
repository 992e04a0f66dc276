# SPDX-License-Identifier: Apache-2.0
"""Numbers of adapters: a formula gives the same, whichever of its numbers are known before the run.

A made-up operator computes a formula of three integers. Each formula is told twice: in the notation of `numbers`, and
in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from texts import model, operators

import onnx_convert
from onnx_convert.adapter import downgrade
from onnx_convert.adapters.lib.dtypes import FLOAT
from onnx_convert.adapters.lib.numbers import Numbers
from oracle import run

OWN = "org.numbers"
LEAST, MOST = -(2**63), 2**63 - 1

Formula = tuple[Callable[..., Any], Callable[..., int | Sequence[int]]]

FORMULAS: dict[str, Formula] = {
    "sum": (lambda a, b, c: a + b + c, lambda a, b, c: a + b + c),
    "sum with numbers": (lambda a, b, c: 1 + a + 0, lambda a, b, c: 1 + a),
    "difference": (lambda a, b, c: a - b - 2, lambda a, b, c: a - b - 2),
    "difference from a number": (lambda a, b, c: 7 - a, lambda a, b, c: 7 - a),
    "product": (lambda a, b, c: a * b * 3, lambda a, b, c: a * b * 3),
    "product with 0 and 1": (lambda a, b, c: 0 * a + 1 * b, lambda a, b, c: b),
    "negative": (lambda a, b, c: -a, lambda a, b, c: -a),
    "quotient": (lambda a, b, c: a // 3, lambda a, b, c: a // 3),
    "quotient of both": (lambda a, b, c: a // (b * b + 1), lambda a, b, c: a // (b * b + 1)),
    "quotient rounded up": (lambda a, b, c: a.divided_up(3), lambda a, b, c: -(-a // 3)),
    "quotient rounded up, by a negative": (lambda a, b, c: a.divided_up(-2), lambda a, b, c: -(a // 2)),
    "remainder": (lambda a, b, c: a - a // 5 * 5, lambda a, b, c: a % 5),
    "at least": (lambda a, b, c: a.at_least(b).at_least(0), lambda a, b, c: max(a, b, 0)),
    "at most": (lambda a, b, c: a.at_most(b).at_most(4), lambda a, b, c: min(a, b, 4)),
    "within what doubles round": (lambda a, b, c: a.at_least(LEAST + 1).at_most(MOST - 2), lambda a, b, c: a),
    "clamped": (lambda a, b, c: (a - 2).at_least(0).at_most(b * b), lambda a, b, c: min(max(a - 2, 0), b * b)),
    "negative or not": (lambda a, b, c: a.is_negative() + 10, lambda a, b, c: (a < 0) + 10),
    "from the front": (lambda a, b, c: a + a.is_negative() * c, lambda a, b, c: a + (a < 0) * c),
    "distance": (lambda a, b, c: (a - b).abs(), lambda a, b, c: abs(a - b)),
    "range": (lambda a, b, c: a.range(c), lambda a, b, c: range(a, a + c)),
    "range with steps": (lambda a, b, c: a.range(c, b), lambda a, b, c: [a + b * i for i in range(c)]),
    "range after a clamp": (
        lambda a, b, c: a.at_least(1).range(c.at_most(2)),
        lambda a, b, c: [max(a, 1) + i for i in range(min(c, 2))],
    ),
}


@downgrade("Formula", at=2, domain=OWN)
def compute(node, op):
    """Computes a formula of its inputs."""
    numbers = Numbers(op)
    formula, _ = FORMULAS[node.attr("name")]
    return formula(*(numbers.of(value) for value in node.inputs)).value


@downgrade("Vector", at=2, domain=OWN)
def put_together(node, op):
    """Puts sizes of the first input and a few numbers into one vector."""
    numbers, x = Numbers(op), node.input(0)
    return numbers.vector([numbers.size(x, 0), 5, numbers.of(6), numbers.size(x, -1), numbers.size(x, 0)])


@downgrade("Limits", at=2, domain=OWN)
def go_beyond(node, op):
    """Adds to numbers at the ends of int64."""
    ends = Numbers(op).of([MOST, LEAST, 0])
    return (ends * 2 + 1).value


@downgrade("Size", at=2, domain=OWN)
def clamp_the_size(node, op):
    """Clamps a size to what every size is."""
    size = Numbers(op).size(node.input(0), 0)
    return size.at_least(0).at_most(MOST).at_least(size.is_negative() - 1).value


@downgrade("Mean", at=2, domain=OWN)
def take_the_mean(node, op):
    """Divides as floats."""
    reals = Numbers(op, FLOAT)
    a, b = (reals.of(value) for value in node.inputs)
    return ((a + b) / 2).floor().at_least(0.5).value


def _three(known: Sequence[bool], numbers: Sequence[int], name: str) -> ModelProto:
    names = "abc"
    given = ", ".join(f"int64[1] {n}" for n, k in zip(names, known, strict=True) if not k)
    fixed = ", ".join(f"int64[1] {n} = {{{v}}}" for n, k, v in zip(names, known, numbers, strict=True) if k)
    node = f'y = {OWN}.Formula<name="{name}">(a, b, c)'
    return model(f"({given}) => (int64[?] y) <{fixed}> {{ {node} }}", 13, org_numbers=2)


@pytest.mark.parametrize("opset", [13, 8, 7])
@pytest.mark.parametrize(
    "known", list(product([False, True], repeat=3)), ids=lambda known: "".join("rk"[k] for k in known)
)
@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name: str, known: tuple[bool, ...], opset: int) -> None:
    for numbers in ((7, 3, 5), (-4, 2, 1), (0, -3, 4), (9, 9, 0), (-10, -1, 3)):
        converted = onnx_convert.convert(_three(known, numbers, name), to={OWN: 1, "": opset}).model
        feeds = {n: np.array([v]) for n, v, k in zip("abc", numbers, known, strict=True) if not k}
        assert not {"Max", "Min"} & {*operators(converted)}  # of doubles, which runtimes do not know below 8
        (y,) = run(converted, feeds)
        assert y.dtype == np.int64
        assert y.tolist() == np.atleast_1d(FORMULAS[name][1](*numbers)).tolist()


@pytest.mark.parametrize(
    ("sizes", "written"),
    [
        ("2,3", ["Identity"]),
        ("2,N", ["Shape", "Slice", "Concat"]),
        ("M,N", ["Shape", "Slice", "Slice", "Concat"]),
    ],
)
def test_a_vector_is_a_constant_where_it_is_known(sizes: str, written: list[str]) -> None:
    source = model(f"(float[{sizes}] x) => (int64[5] y) {{ y = {OWN}.Vector(x) }}", 13, org_numbers=2)
    converted = onnx_convert.convert(source, to={OWN: 1}).model
    assert operators(converted) == written
    assert run(converted, {"x": np.zeros((2, 3), np.float32)})[0].tolist() == [2, 5, 6, 3, 2]


def test_what_is_known_ends_where_int64_ends() -> None:
    source = model(f"() => (int64[3] y) {{ y = {OWN}.Limits() }}", 13, org_numbers=2)
    converted = onnx_convert.convert(source, to={OWN: 1}).model
    assert run(converted, {})[0].tolist() == [MOST, LEAST, 1]


@pytest.mark.parametrize(
    ("graph", "feeds"),
    [
        ("(float[1] a, float[1] b) => (float[1] y)", {"a": [7.5], "b": [-2.0]}),
        ("(float[1] a) => (float[1] y) <float[1] b = {-2.0}>", {"a": [7.5]}),
        ("() => (float[1] y) <float[1] a = {7.5}, float[1] b = {-2.0}>", {}),
    ],
)
def test_reals(graph: str, feeds: dict[str, list[float]]) -> None:
    converted = onnx_convert.convert(model(f"{graph} {{ y = {OWN}.Mean(a, b) }}", 13, org_numbers=2), to={OWN: 1}).model
    assert run(converted, {name: np.array(value, np.float32) for name, value in feeds.items()})[0].tolist() == [2.0]


def test_a_clamp_that_never_bites_is_not_written() -> None:
    source = model(f"(float[N] x) => (int64[1] y) {{ y = {OWN}.Size(x) }}", 13, org_numbers=2)
    assert operators(onnx_convert.convert(source, to={OWN: 1}).model) == ["Shape", "Slice"]
