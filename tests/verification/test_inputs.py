# SPDX-License-Identifier: Apache-2.0
"""Inputs that are made: what the signature and the nodes say of them holds, so that the model runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from texts import function, model

from onnx_convert.verification.evaluators import evaluate
from onnx_convert.verification.inputs import CannotError, Maker, Plan
from onnx_convert.verification.subjects import Subject
from onnx_convert.verification.values import EDGES


def made(source: onnx.ModelProto, seed: int = 0, kind: str = "random", **sizes: int) -> dict[str, Any]:
    maker = Maker(Subject(source).source, {}, sizes)
    return maker.make(next(maker.plans()), seed, kind)


def test_dtypes_and_shapes_are_those_of_the_signature() -> None:
    inputs = "float16[N,3] a, int64[N] b, bool[2,?] c, string[2] d, uint8 e, bfloat16[M] f"
    text = f"({inputs}) => (float16[N,3] y) {{ y = Relu (a) }}"
    feeds = made(model(text, 14))
    assert {name: (value.dtype.name, value.shape) for name, value in feeds.items()} == {
        "a": ("float16", (2, 3)),
        "b": ("int64", (2,)),
        "c": ("bool", (2, 3)),
        "d": ("object", (2,)),
        "e": ("uint8", ()),
        "f": ("bfloat16", (4,)),
    }


def test_the_same_seed_makes_the_same_and_another_something_else() -> None:
    source = model("(float[9] x) => (float[9] y) { y = Relu (x) }", 14)
    assert (made(source)["x"] == made(source)["x"]).all()
    assert (made(source)["x"] != made(source, 1)["x"]).any()


def test_initializers_are_not_made() -> None:
    source = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Add (x, w) }", 6)
    assert set(made(source)) == {"x"}


def test_named_sizes_are_one_and_formulas_follow() -> None:
    source = model("(float[batch,past] a, float[batch,total] b) => (float[batch,past] y) { y = Relu (a) }", 14)
    source.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "past + 1"
    feeds = made(source)
    assert feeds["b"].shape == (feeds["a"].shape[0], feeds["a"].shape[1] + 1)
    assert made(source, past=7)["b"].shape[1] == 8


# A graph, its opset, and for an input what has to hold. Each model has to run on what is made.
ROLES = [
    (
        "(int64[4] i) => (float[4,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = Gather (w, i) }",
        "i",
        lambda v: (v >= 0) & (v < 3),
    ),
    (
        "(int64[4] i) => (float[3,4] y) <float[3,2] w = {1,2,3,4,5,6}> { y = Gather <axis = 1> (w, i) }",
        "i",
        lambda v: (v >= 0) & (v < 2),
    ),
    (
        "(int32[4] i) => (float[4] y) <float[3] w = {1,2,3}> { j = Cast <to = 7> (i)  y = Gather (w, j) }",
        "i",
        lambda v: (v >= 0) & (v < 3),
    ),
    (
        "(float[2,3] x, int64[2,3] i) => (float[2,3] y) { y = GatherElements <axis = 1> (x, i) }",
        "i",
        lambda v: (v >= 0) & (v < 3),
    ),
    ("(float[2,3] x, int64[5,2] i) => (float[5] y) { y = GatherND (x, i) }", "i", lambda v: (v >= 0) & (v < 2)),
    (
        "(float[5] x, int64[3] i, float[3] u) => (float[5] y) { y = ScatterElements (x, i, u) }",
        "i",
        lambda v: len(set(v)) == 3,
    ),
    (
        "(int64[4] i) => (float[4,3] y) <int64 d = {3}, float[2] v = {0,1}> { y = OneHot (i, d, v) }",
        "i",
        lambda v: (v >= 0) & (v < 3),
    ),
    (
        "(float[2,5] x, int64[1] k) => (float[2,?] y, int64[2,?] z) { y, z = TopK (x, k) }",
        "k",
        lambda v: (v >= 1) & (v <= 5),
    ),
    (
        "(float[4,2,3] x, int64[2] n) => (float[4,2,3] y) { y = ReverseSequence (x, n) }",
        "n",
        lambda v: (v >= 1) & (v <= 4),
    ),
    (
        "(int64[3] attention_mask) => (int64[3] y) { y = Abs (attention_mask) }",
        "attention_mask",
        lambda v: (v == 0) | (v == 1),
    ),
    ("(int64[3] m) => (bool[3] y) { y = Cast <to = 9> (m) }", "m", lambda v: (v == 0) | (v == 1)),
    ("(float[3] m) => (float[3] y) <float o = {1}> { y = Sub (o, m) }", "m", lambda v: (v == 0) | (v == 1)),
    (
        "(int64 rate) => (bool y) <int64 k = {16000}> { y = Equal (rate, k) }",
        "rate",
        lambda v: (v == 16000) | (v == 16001),
    ),
    ("(float[2,3] x, int64[3] s) => (float[?,?,?] y) { y = Reshape (x, s) }", "s", lambda v: v[0] == -1),
    ("(float[2,3] x, int64[2] r) => (float[?,?] y) { y = Tile (x, r) }", "r", lambda v: v >= 1),
    ("(float[2,3] x, int64[2] e) => (float[?,?] y) { y = Expand (x, e) }", "e", lambda v: v == 1),
    ("(float[4,1] x, int64[1] a) => (float[4] y) { y = Squeeze (x, a) }", "a", lambda v: v == 1),
    ("(float[4,2] x, int64[2] s) => (float[?,2] y, float[?,2] z) { y, z = Split (x, s) }", "s", lambda v: v == 2),
    (
        '(float[1,1,2,2] x, float[4] s) => (float[?,?,?,?] y) { y = Resize <mode = "nearest"> (x, , s) }',
        "s",
        lambda v: v >= 1,
    ),
    ("(int64 n) => (int64[?] y) <int64 a = {0}, int64 d = {1}> { y = Range (a, n, d) }", "n", lambda v: v >= 2),
    ("(int64[3] a, int64[3] b) => (int64[3] y) { y = Div (a, b) }", "b", lambda v: v != 0),
    (
        "(float[2,3] x, int64[2] t) => (float y) { y = NegativeLogLikelihoodLoss (x, t) }",
        "t",
        lambda v: (v >= 0) & (v < 3),
    ),
    ("(float[9] x, float s, uint8 z) => (uint8[9] y) { y = QuantizeLinear (x, s, z) }", "s", lambda v: v > 0),
    (
        "(float[1,1,4,4] x, float[2,4] r, int64[2] i) => (float[2,1,1,1] y) { y = RoiAlign (x, r, i) }",
        "i",
        lambda v: v == 0,
    ),
]


@pytest.mark.parametrize(("graph", "name", "holds"), ROLES, ids=[row[0].partition("{ ")[2] for row in ROLES])
@pytest.mark.parametrize("seed", [0, 1])
def test_what_the_nodes_say_holds(graph: str, name: str, holds: Any, seed: int) -> None:
    source = model(graph, 13)
    feeds = made(source, seed)
    assert np.all(holds(feeds[name])), feeds[name]
    evaluate(source, feeds)


def test_an_index_is_found_in_branches_and_functions() -> None:
    branch = """(bool b, int64[4] i) => (float[4] y) <float[3] w = {1,2,3}> { y = If (b) <
        then_branch = g () => (float[4] t) { t = Gather (w, i) },
        else_branch = h () => (float[4] e) { e = Gather (w, i) }> }"""
    call = model("(int64[4] i) => (float[4] y) { y = f.F (i) }", 13,
                 function("w = Constant <value = float[3] {1,2,3}> ()  y = Gather (w, x)", 13), f=1)  # fmt: skip
    for source in (model(branch, 13), call):
        for seed in range(4):
            feeds = made(source, seed)
            assert set(feeds["i"]) <= ({0, 1, 2} if source is not call else {0})
            evaluate(source, feeds)


def test_sequences_and_optionals() -> None:
    source = model("(seq(float[2]) s) => (float[2] y) <int64 i = {0}> { y = SequenceAt (s, i) }", 13)
    feeds = made(source)
    assert [value.shape for value in feeds["s"]] == [(2,), (2,)]
    evaluate(source, feeds)
    optional = model("(optional(float[2]) o) => (float[2] y) { y = OptionalGetElement (o) }", 18)
    assert made(optional)["o"].shape == (2,)
    assert made(optional, 2)["o"] is None


def test_keys_of_a_table() -> None:
    encoder = 'ai.onnx.ml.LabelEncoder <keys_strings = ["ab", "cd"], values_int64s = [1, 2]>'
    source = model(f"(string[6] x) => (int64[6] y) {{ y = {encoder} (x) }}", 13, ai_onnx_ml=2)
    assert set(made(source)["x"]) <= {"ab", "cd"}


@pytest.mark.parametrize("kind", EDGES)
def test_the_edges(kind: str) -> None:
    source = model("(float[99] x, int64[9] i) => (float[99] y) { y = Relu (x) }", 13)
    x = made(source, kind=kind)["x"]
    assert np.all({
        "between 0 and 1": (x >= 0) & (x <= 1),
        "zeros": x == 0,
        "negative": x <= 0,
        "large": np.abs(x) >= 10,
        "tiny": (np.abs(x) <= 1e-2) & (x != 0),
        "NaN": np.isnan(x) | np.isfinite(x),
    }[kind])  # fmt: skip
    assert np.isnan(x).any() == (kind == "NaN")


def test_edges_are_for_floats_that_are_free() -> None:
    assert Maker(Subject(model("(float[2] x) => (float[2] y) { y = Relu (x) }", 13)).source, {}, {}).floats_freely
    mask = model("(float[2] mask) => (float[2] y) { y = Relu (mask) }", 13)
    assert not Maker(Subject(mask).source, {}, {}).floats_freely


def test_what_has_no_rank_gets_one_after_the_other() -> None:
    source = model("(float[] x) => (float[] y) { y = Relu (x) }", 13)
    maker = Maker(Subject(source).source, {}, {})
    ranks = dict.fromkeys(len(maker.shapes(plan)["x"]) for plan in maker.plans() if plan.size < 8)
    assert [*ranks] == [2, 1, 3, 4, 0]


def test_what_is_too_large_is_not_tried() -> None:
    source = model("(float[A,B,C,D] x) => (float[A,B,C,D] y) { y = Relu (x) }", 13)
    with pytest.raises(CannotError, match="input 'x' would have"):
        Maker(Subject(source).source, {}, {}).shapes(Plan(512))


def test_what_has_no_dtype_cannot_be_made() -> None:
    source = model("(float[2] x) => (float[2] y) { y = Relu (x) }", 13)
    source.graph.input[0].type.ClearField("tensor_type")
    with pytest.raises(CannotError, match="input 'x' has no dtype"):
        Maker(Subject(source).source, {}, {})


def test_what_is_open_grows_with_the_seed() -> None:
    def grown(text: str, seed: int) -> Any:
        maker = Maker(Subject(model(text, 13)).source, {}, {})
        plan = maker.grown(next(maker.plans()), seed)
        return None if plan is None else maker.shapes(plan)["x"]

    row = "(float[N,3] x) => (float[N,3] y) { y = Relu (x) }"
    assert [grown(row, seed) for seed in range(4)] == [None, (32, 3), (256, 3), None]
    image = "(float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu (x) }"
    assert [grown(image, seed) for seed in (1, 2)] == [(32, 3, 32, 32), (1, 3, 256, 256)]
    assert grown("(float[2,3] x) => (float[2,3] y) { y = Relu (x) }", 1) is None
