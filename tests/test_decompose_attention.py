# SPDX-License-Identifier: Apache-2.0
"""What the tables cannot tell of attention written out: scores, signs, ranks that nobody knows, and how small it is."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from texts import model, operators

import onnx_convert
from oracle import compare, run, run_reference, validate

RANDOM = np.random.default_rng(0)


def drawn(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


QKV = {"q": (2, 4, 3, 8), "k": (2, 4, 6, 8), "v": (2, 4, 6, 5)}
INPUTS = "float[2,4,3,8] q, float[2,4,6,8] k, float[2,4,6,5] v, bool[3,6] m"
MASK = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]], dtype=bool)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("target", [22, 9, 7])
def test_scores(mode: int, target: int) -> None:
    """The reference evaluator hands out infinities for what is masked, as the text says, but no scores as they were."""
    attributes = f"qk_matmul_output_mode={mode},softcap=1.5"
    graph = (
        f'({INPUTS}) => (float[2,4,3,5] y, float[2,4,3,6] s) {{ y, "", "", s = Attention<{attributes}>(q, k, v, m) }}'
    )
    source, feeds = model(graph, 23), {**drawn(**QKV), "m": MASK}
    result = onnx_convert.convert(source, to=target).model
    validate(result)
    judge = run if mode == 0 else run_reference
    assert compare(judge(source, feeds), run(result, feeds)) is None


def test_a_negative_scale() -> None:
    graph = f"({INPUTS}) => (float[2,4,3,5] y) {{ y = Attention<scale=-0.5>(q, k, v, m) }}"
    feeds = {**drawn(**QKV), "m": np.ones((3, 6), bool)}
    (y,) = run(onnx_convert.convert(model(graph, 23), to=13).model, feeds)
    scores = np.exp(-0.5 * feeds["q"] @ feeds["k"].swapaxes(2, 3))
    np.testing.assert_allclose(y, scores / scores.sum(-1, keepdims=True) @ feeds["v"], atol=1e-5)


@pytest.mark.parametrize("target", [17, 13])
def test_a_query_that_sees_nothing_of_bfloat16(target: int) -> None:
    """The lowest number is another one in each dtype."""
    graph = "(bfloat16[1,1,2,4] q, bfloat16[1,1,3,4] k, bfloat16[1,1,3,4] v, bfloat16[2,3] m) => (bfloat16[1,1,2,4] y) "
    source = model(graph + "{ y = Attention(q, k, v, m) }", 23)
    kind = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    mask = np.array([[-np.inf] * 3, [0, -np.inf, 0]])
    shapes = {"q": (1, 1, 2, 4), "k": (1, 1, 3, 4), "v": (1, 1, 3, 4)}
    feeds = {name: array.astype(kind) for name, array in {**drawn(**shapes), "m": mask}.items()}
    (y,) = run_reference(onnx_convert.convert(source, to=target, types="cast").model, feeds)
    assert (y[0, 0, 0] == 0).all()
    assert np.isfinite(y[0, 0, 1].astype(np.float32)).all()


def test_keys_that_are_shared_are_gathered_not_repeated() -> None:
    graph = (
        "(float[B,S,64] q, float[B,T,16] k, float[B,T,16] v) => (float[B,S,64] y) "
        "{ y = Attention<q_num_heads=8,kv_num_heads=2>(q, k, v) }"
    )
    result = onnx_convert.convert(model(graph, 23), to=17).model
    assert operators(result) == [
        *["Reshape", "Transpose"] * 3, "Gather", "Transpose", "Mul", "Mul", "MatMul", "Softmax", "Gather", "MatMul",
        "Transpose", "Reshape",
    ]  # fmt: skip


RULES = {"linear": "", "gated": "d", "delta": "b", "gated_delta": "db"}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("target", [26, 12, 9])
@pytest.mark.parametrize("past", [False, True])
def test_linear_attention_of_unknown_rank(rule: str, target: int, past: bool) -> None:
    """The reference evaluator judges: onnxruntime runs the body of the specification with known ranks only."""
    shapes = {"q": (2, 5, 8), "k": (2, 5, 4), "v": (2, 5, 6), "d": (2, 5, 2), "b": (2, 5, 1), "p": (2, 2, 2, 3)}
    used = [name for name in shapes if name in "qkv" + RULES[rule] + "p" * past]
    inputs = ", ".join(f"float[{','.join('?' * len(shapes[name]))}] {name}, int64[{name}n] {name}s" for name in used)
    hidden = " ".join(f"{name}h = Reshape({name}, {name}s)" for name in used)
    given = [f"{name}h" if name in used else '""' for name in "qkvpdb"]
    while given[-1] == '""':
        given.pop()
    attributes = f'q_num_heads=4,kv_num_heads=2,update_rule="{rule}"'
    call = f"y, t = LinearAttention<{attributes}>({', '.join(given)})"
    graph = f"({inputs}) => (float[a,b,c] y, float[e,f,g,h] t) {{ {hidden} {call} }}"
    source = model(graph, 27)
    feeds = drawn(**{name: shapes[name] for name in used})
    feeds |= {f"{name}s": np.array(shapes[name]) for name in used}
    result = onnx_convert.convert(source, to=target).model
    validate(result)
    assert compare(run_reference(source, feeds), run(result, feeds)) is None


def test_labels_beyond_the_classes_are_ignored() -> None:
    graph = "(float[4,3] x, int64[4] t) => (float y) { y = NegativeLogLikelihoodLoss<ignore_index=255>(x, t) }"
    x = np.array([[1, 2, 3], [np.nan, np.inf, 0], [4, 5, 6], [7, 8, 9]], np.float32)
    for target in (11, 9, 7):
        (y,) = run(onnx_convert.convert(model(graph, 12), to=target).model, {"x": x, "t": np.array([2, 255, 0, 1])})
        assert y == -5


def test_large_scores_lose_as_much_as_they_should() -> None:
    graph = "(float[2,3] x, int64[2] t) => (float y) { y = SoftmaxCrossEntropyLoss(x, t) }"
    x = np.array([[1e4, 0, -1e4], [300, 301, -5]], np.float32)
    (y,) = run(onnx_convert.convert(model(graph, 12), to=9).model, {"x": x, "t": np.array([2, 0])})
    np.testing.assert_allclose(y, (2e4 + np.log(1 + np.e)) / 2, rtol=1e-6)
