# SPDX-License-Identifier: Apache-2.0
"""How two tensors differ, in numbers, and what a promise makes of it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from texts import model

from onnx_convert.verification.comparison import measure, only_last_bits
from onnx_convert.verification.judging import Judge, random_outputs
from onnx_convert.verification.outcome import Output

NAN, INF = float("nan"), float("inf")
ONE = "(float[2] x) => (float[2] y) { y = Relu (x) }"


def floats(*values: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(values).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_neighbours_are_one_ulp_apart(dtype: Any) -> None:
    one = np.ones(3, dtype)
    other = one.copy()
    bits = other.view(f"u{other.dtype.itemsize}")
    bits[1] += 1
    found = measure(one, other)
    assert (found.elements, found.differing, found.beyond, found.max_ulp) == (3, 1, 0, 1)
    assert found.max_abs == pytest.approx(float(other[1]) - 1)
    assert found.first == (1,)


def test_ulps_are_counted_through_zero() -> None:
    tiny = np.array([1], np.uint32).view(np.float32)
    assert measure(-tiny, tiny).max_ulp == 2


@pytest.mark.parametrize(("one", "other"), [(floats(NAN), np.array([0x7FC00001], np.uint32).view(np.float32)),
                                            (floats(0.0), floats(-0.0)), (floats(INF), floats(INF))])  # fmt: skip
def test_what_no_text_tells_is_no_difference(one: np.ndarray, other: np.ndarray) -> None:
    assert measure(one, other).differing == 0


def test_what_is_not_finite_is_infinitely_far() -> None:
    found = measure(floats(1, NAN, INF), floats(1, 1, -INF))
    assert (found.differing, found.beyond, found.max_abs, found.max_rel, found.max_ulp) == (2, 2, INF, INF, None)


def test_the_absolute_tolerance_follows_the_size_of_the_tensor() -> None:
    assert measure(floats(1e4, 0), floats(1e4, 0.05)).beyond == 0
    assert measure(floats(1, 0), floats(1, 0.05)).beyond == 1
    assert measure(floats(1e-4, 0), floats(1e-4, 1e-8)).beyond == 1
    assert measure(floats(0, 0), floats(1e-11, 0)).beyond == 0


def test_the_last_bits_are_those_of_the_largest_element() -> None:
    assert only_last_bits(floats(1, 1e-9), floats(1, 1e-7))
    assert not only_last_bits(floats(1, 1e-9), floats(1, 1e-5))
    assert not only_last_bits(floats(1, NAN), floats(1, 1))
    assert not only_last_bits(np.array([1]), np.array([2]))


def test_edges_are_where_much_is_undefined() -> None:
    assert measure(floats(1e-5), floats(1.01e-5), edge=True).beyond == 0
    assert measure(floats(1e-5), floats(1.01e-5)).beyond == 1
    assert measure(floats(NAN, 1), floats(0, 1), edge=True).differing == 0
    assert measure(floats(NAN, 1), floats(0, 1)).beyond == 1
    assert measure(floats(0, 1), floats(NAN, 1), edge=True).beyond == 1


def test_integers_may_be_apart_by_a_step() -> None:
    one, other = np.array([1, 2, 3], np.uint8), np.array([1, 3, 5], np.uint8)
    assert measure(one, other).beyond == 2
    assert measure(one, other, step=1).beyond == 1


def test_strings_and_truths_are_equal_or_not() -> None:
    found = measure(np.array(["a", "b"], object), np.array(["a", "c"], object))
    assert (found.beyond, found.expected, found.got) == (1, "b", "c")
    assert measure(np.array([True, False]), np.array([True, True])).beyond == 1


@pytest.mark.parametrize(("promised", "agrees"), [("exact", False), ("equivalent", True), ("", True)])
def test_bits_are_what_exact_promises(promised: str, agrees: bool) -> None:
    source = model(ONE, 13)
    near = Judge(source, source, promised).output("y", floats(1, 2), floats(1, 2.000001))
    assert near.agrees is agrees and near.differing == 1 and not near.identical
    assert near.why == ("" if agrees else near.why) and bool(near.why) is not agrees
    assert not Judge(source, source, promised).output("y", floats(1, 2), floats(1, 2.1)).agrees


def test_quantized_results_may_round_to_either_neighbour_unless_they_are_exact() -> None:
    source = model("(float[2] x, float s, uint8 z) => (uint8[2] y) { y = QuantizeLinear (x, s, z) }", 13)
    one, other = np.array([1, 2], np.uint8), np.array([1, 3], np.uint8)
    assert Judge(source, source, "equivalent").output("y", one, other).agrees
    assert not Judge(source, source, "exact").output("y", one, other).agrees


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (floats(1), floats(1, dtype=np.float64), "dtype float32 was expected, it is float64"),
        (floats(1), floats(1, 2), "shape (1,) was expected, it is (2,)"),
        ([floats(1)], [floats(1), floats(1)], "a sequence of 1 in the source, of 2 in the result"),
        ([floats(1)], [floats(2)], "element 0: 1 of 1 elements differ"),
        (None, floats(1), "one of the two is absent"),
        ({"a": 1.0}, {"a": 2.0}, "{'a': 1.0} was expected, it is {'a': 2.0}"),
    ],
)
def test_what_differs_besides_numbers(one: Any, other: Any, says: str) -> None:
    source = model(ONE, 13)
    found = Judge(source, source, "equivalent").output("y", one, other)
    assert not found.agrees and found.why.startswith(says)


def test_outputs_add_up_and_what_is_not_known_of_one_is_not_known_of_both() -> None:
    one = Output("y", agrees=True, elements=2, differing=1, max_abs=0.5, max_ulp=3)
    other = Output("y", agrees=True, elements=3, max_abs=0.25, max_ulp=None, random=True)
    both = one.together(other)
    assert (both.elements, both.differing, both.max_abs, both.max_ulp, both.random) == (5, 1, 0.5, None, True)
    assert both == other.together(one)
    assert one.together(one).max_ulp == 3


# ---- randomness

RANDOM = "(float[64] x) => (float[64] y, float[64] z) { r = RandomNormalLike (x)  y = Add (x, r)  z = Relu (x) }"
BRANCH = """(float[64] x, bool b) => (float[64] y) { y = If (b) <
    then_branch = g () => (float[64] r) { r = RandomNormalLike (x) },
    else_branch = h () => (float[64] s) { s = Relu (x) }> }"""


@pytest.mark.parametrize(
    ("graph", "opset", "random"),
    [
        (RANDOM, 13, {"r", "y"}),
        (BRANCH, 13, {"y"}),
        ("(float[9] x, float r, bool t) => (float[9] y) { y = Dropout (x, r, t) }", 13, {"y"}),
        ("(float[9] x) => (float[9] y) { y = Dropout (x) }", 13, set()),
        ("(float[9] x) => (float[9] y) { y = Dropout (x) }", 6, {"y"}),
        ("(float[9] x) => (float[9] y) { y = Dropout <is_test = 1> (x) }", 6, set()),
    ],
)
def test_what_is_random(graph: str, opset: int, random: set[str]) -> None:
    assert random_outputs(model(graph, opset)) == random


def test_random_results_are_compared_by_their_distribution() -> None:
    source = model("(float[999] x) => (float[999] y) { y = RandomNormalLike (x) }", 13)
    judge, random = Judge(source, source, "exact"), np.random.default_rng(0)
    one, same, again = (random.standard_normal(999).astype(np.float32) for _ in range(3))
    assert judge.output("y", one, same, again).agrees
    found = judge.output("y", one, same + np.float32(1), again)
    assert not found.agrees and found.why.startswith("it is random, and distributed otherwise (mean ")
    assert not judge.output("y", one, same[:5], again).agrees
    assert judge.output("y", one, same + np.float32(1), again + np.float32(1)).agrees  # that tells nothing
