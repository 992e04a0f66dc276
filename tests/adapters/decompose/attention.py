# SPDX-License-Identifier: Apache-2.0
"""Attention (23) where it does not exist."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from texts import model, operators

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import compare, run, run_reference, validate

# The scale's root is a float in all dtypes, as in the bodies of the specification: here it has few bits.
SPLIT = "float[2,4,3,16] q, float[2,2,6,16] k, float[2,2,6,5] v", "2,4,3,5"
OWN = "float[2,4,3,16] q, float[2,4,6,16] k, float[2,4,6,5] v", "2,4,3,5"
FLAT = "float[2,3,64] q, float[2,6,32] k, float[2,6,10] v", "2,3,20"
HEADS = "q_num_heads=4,kv_num_heads=2"
SEEN = {"m": [[1, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]}  # the second query sees nothing
# Without a rank it is not known whether the heads are side by side; their numbers say so, or their absence.
FLAT_RANK = {"ranks": "rank"}


def attention(attributes: str = "", kind: tuple[str, str] = OWN, *, mask: str = "", past: int = 0) -> str:
    """Attention over 2 members, 3 queries and 6 keys."""
    inputs, y = kind
    heads = 2 if "k_num" in attributes or "float[2,2,6" in inputs else 4
    given = [inputs]
    names = ["q", "k", "v", "m" if mask else '""']
    results, outputs = ["y"], f"float[{y}] y"
    if mask:
        given.append(f"{mask} m")
    if past:
        given.append(f"float[2,{heads},{past},16] pk, float[2,{heads},{past},5] pv")
        names += ["pk", "pv"]
        results += ["nk", "nv"]
        outputs += f", float[2,{heads},{past + 6},16] nk, float[2,{heads},{past + 6},5] nv"
    while names[-1] == '""':
        names.pop()
    return (
        f"({', '.join(given)}) => ({outputs}) "
        f"{{ {', '.join(results)} = Attention{attributes and f'<{attributes}>'}({', '.join(names)}) }}"
    )


PLAIN = ["Transpose", "Mul", "Mul", "MatMul", "Softmax", "MatMul"]

ROWS: list[Row] = [
    rewrites("Attention written out", 23, 22, attention()),
    rewrites("Attention without a size", 23, 22, attention("scale=0.25"), into=["Transpose", "Mul", "Mul", *PLAIN[3:]]),
    rewrites(
        "Attention causal, a small mask",
        23,
        22,
        attention("scale=0.25,is_causal=1"),
        nodes=7,
    ),
    rewrites(
        "Attention causal, a large mask",
        23,
        22,
        "(float[1,1,40,16] q, float[1,1,50,16] k, float[1,1,50,4] v) => (float[1,1,40,4] y) "
        "{ y = Attention<is_causal=1>(q, k, v) }",
        nodes=9,
    ),
    rewrites(
        "Attention causal, a mask of unknown size",
        23,
        9,
        "(float[B,2,Q,16] q, float[B,2,K,16] k, float[B,2,K,4] v, float[B,2,P,16] o, float[B,2,P,4] w) => "
        "(float[B,2,Q,4] y, float[B,2,?,16] n, float[B,2,?,4] m) "
        '{ y, n, m = Attention<is_causal=1>(q, k, v, "", o, w) }',
        dims={"B": 2, "Q": 3, "K": 4, "P": 2},
    ),
    *(
        row
        for target in (22, 17, 12, 10, 9, 7)
        for row in (
            rewrites("Attention of many heads", 23, target, attention()),
            rewrites("Attention of shared keys", 23, target, attention("scale=0.0625", SPLIT)),
            rewrites("Attention of flat heads", 23, target, attention(HEADS, FLAT), may_refuse=FLAT_RANK),
            rewrites("Attention causal", 23, target, attention("is_causal=1")),
            rewrites("Attention masked", 23, target, attention("", SPLIT, mask="bool[3,6]"), feeds=SEEN),
            rewrites("Attention biased", 23, target, attention("softcap=2.0", mask="float[2,1,3,6]")),
        )
    ),
    *(
        row
        for target in (22, 12, 7)
        for row in (
            rewrites("Attention masked and causal", 23, target, attention("is_causal=1", mask="bool[3,6]"), feeds=SEEN),
            rewrites("Attention biased and causal", 23, target, attention("is_causal=1", mask="float[4,3,6]")),
            rewrites("Attention with a past", 23, target, attention("is_causal=1", SPLIT, past=2)),
            rewrites("Attention of high precision", 23, target, attention("softmax_precision=1")),
        )
    ),
    rewrites("Attention of unknown sizes", 25, 9, attention("is_causal=1,left_window_size=2", SPLIT)),
]


test_rows = each_of(ROWS)


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


def test_a_mask_for_too_few_keys_is_no_fault_of_ours() -> None:
    """Only from 24 on it may be shorter."""
    graph = f"({INPUTS.replace('[3,6]', '[3,5]')}) => (float[2,4,3,5] y) {{ y = Attention(q, k, v, m) }}"
    with pytest.raises(onnx_convert.OnnxConvertError, match="its mask is for 5 keys, and there are 6"):
        onnx_convert.convert(model(graph, 23), to=22)


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
