# SPDX-License-Identifier: Apache-2.0
"""RotaryEmbedding (23), TensorScatter (24), CausalConvWithState and LinearAttention (27) where they do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from texts import model

import onnx_convert
from boundaries import Row, each_of, rewrites
from oracle import compare, feeds_for, run, run_reference, validate

# ---- RotaryEmbedding

POSITIONS = {"p": [[0, 3, 5], [1, 2, 7]]}
FLAT_RANK = {"ranks": "rank"}  # a number of heads may be there or not where they are not side by side


def rotary(attributes: str = "", half: int = 4, *, flat: bool = False, positions: bool = True) -> str:
    """RotaryEmbedding of 2 members, 2 heads of size 8, 3 positions."""
    x = "2,3,16" if flat else "2,2,3,8"
    table, more, p = (f"10,{half}", ", int64[2,3] p", ", p") if positions else (f"2,3,{half}", "", "")
    return (
        f"(float[{x}] x, float[{table}] c, float[{table}] s{more}) => (float[{x}] y) "
        f"{{ y = RotaryEmbedding{attributes and f'<{attributes}>'}(x, c, s{p}) }}"
    )


ROTARY: list[Row] = [
    row
    for target in (22, 12, 9, 7)
    for row in (
        rewrites("RotaryEmbedding", 23, target, rotary(), feeds=POSITIONS),
        rewrites("RotaryEmbedding of given angles", 23, target, rotary(positions=False)),
        rewrites("RotaryEmbedding in pairs", 23, target, rotary("interleaved=1"), feeds=POSITIONS),
        rewrites("RotaryEmbedding in part", 23, target, rotary("rotary_embedding_dim=4", 2), feeds=POSITIONS),
        rewrites(
            "RotaryEmbedding flat", 23, target, rotary("num_heads=2", flat=True), feeds=POSITIONS, may_refuse=FLAT_RANK
        ),
        rewrites(
            "RotaryEmbedding flat, in part and in pairs",
            23,
            target,
            rotary("num_heads=2,interleaved=1,rotary_embedding_dim=4", 2, flat=True, positions=False),
            may_refuse=FLAT_RANK,
        ),
    )
]

# ---- TensorScatter


def scatter(attributes: str = "", *, first: bool = True, axis: int = 2) -> str:
    """TensorScatter of 2 elements into 5."""
    past, update = ["2", "3", "4", "2"], ["2", "3", "4", "2"]
    past[axis], update[axis] = "5", "2"
    more, w = (", int64[2] w", ", w") if first else ("", "")
    return (
        f"(float[{','.join(past)}] x, float[{','.join(update)}] u{more}) => (float[{','.join(past)}] y) "
        f"{{ y = TensorScatter{attributes and f'<{attributes}>'}(x, u{w}) }}"
    )


EXACT = {"exact": True}
SCATTER: list[Row] = [
    row
    for target in (23, 17, 12, 11, 10, 9)
    for row in (
        rewrites("TensorScatter", 24, target, scatter(), feeds={"w": [1, 3]}, options=EXACT),
        rewrites("TensorScatter at the start", 24, target, scatter(first=False), options=EXACT),
        rewrites("TensorScatter around", 24, target, scatter('mode="circular"'), feeds={"w": [4, 8]}, options=EXACT),
        rewrites(
            "TensorScatter of another axis", 24, target, scatter("axis=1", axis=1), feeds={"w": [0, 2]}, options=EXACT
        ),
        rewrites(
            "TensorScatter of the last axis", 24, target, scatter("axis=-1", axis=3), feeds={"w": [3, 2]}, options=EXACT
        ),
    )
]

# ---- CausalConvWithState


def conv(attributes: str = "", *, k: int = 4, bias: bool = True, past: bool = True, length: int = 5) -> str:
    """CausalConvWithState of 3 channels."""
    b, s = ", float[3] b" if bias else "", f", float[2,3,{k - 1}] s" if past else ""
    inputs = ["x", "w", "b" if bias else '""', "s"][: 4 if past else 3 if bias else 2]
    return (
        f"(float[2,3,{length}] x, float[3,1,{k}] w{b}{s}) => (float[2,3,{length}] y, float[2,3,{k - 1}] t) "
        f"{{ y, t = CausalConvWithState{attributes and f'<{attributes}>'}({', '.join(inputs)}) }}"
    )


KERNEL = {"dims": "kernel", "ranks": "kernel"}
CONV: list[Row] = [
    row
    for target in (26, 17, 12, 10, 7)
    for row in (
        rewrites("CausalConvWithState", 27, target, conv(), may_refuse=KERNEL),
        rewrites("CausalConvWithState swish", 27, target, conv('activation="silu"', bias=False), may_refuse=KERNEL),
        rewrites("CausalConvWithState from zeros", 27, target, conv(past=False), may_refuse=KERNEL),
        rewrites("CausalConvWithState of one token", 27, target, conv(length=1, past=False), may_refuse=KERNEL),
        rewrites("CausalConvWithState of one tap", 27, target, conv(k=1), may_refuse=KERNEL),
        rewrites(
            "CausalConvWithState of unknown channels",
            27,
            target,
            "(float[B,C,L] x, float[C,1,3] w, float[C] b) => (float[B,C,L] y, float[B,C,2] t) "
            "{ y, t = CausalConvWithState(x, w, b) }",
            may_refuse=KERNEL,
        ),
    )
]

# ---- LinearAttention


def linear(rule: str, decay: str = "", beta: str = "", *, past: bool = False, more: str = "") -> str:
    """LinearAttention of 2 members, 3 tokens, 4 heads of queries and 2 of keys, of the sizes 2 and 3.

    Ranks are told by Reshapes: without them onnxruntime does not run the body of the specification.
    """
    shapes = {"q": "2,3,8", "k": "2,3,4", "v": "2,3,6"}
    shapes |= {name: f"2,3,{size}" for name, size in (("d", decay), ("b", beta)) if size}
    shapes |= {"p": "2,2,2,3"} if past else {}
    given = [f"float[{shape}] {name}" for name, shape in shapes.items()]
    ranked = [f"{name}r = Reshape({name}, {'four' if name == 'p' else 'three'})" for name in shapes]
    names = [f"{name}r" if name in shapes else '""' for name in "qkvpdb"]
    while names[-1] == '""':
        names.pop()
    return (
        f"({', '.join(given)}) => (float[2,3,12] y, float[2,2,2,3] t) "
        f"<int64[3] three = {{0,0,-1}}, int64[4] four = {{0,0,0,-1}}> {{ {' '.join(ranked)} "
        f'y, t = LinearAttention<q_num_heads=4,kv_num_heads=2,update_rule="{rule}"{more}>({", ".join(names)}) }}'
    )


LINEAR: list[Row] = [
    row
    for target in (26, 20, 17, 12, 10, 9)
    for row in (
        rewrites("LinearAttention", 27, target, linear("linear")),
        rewrites("LinearAttention from a state", 27, target, linear("linear", past=True, more=",scale=0.5")),
        rewrites("LinearAttention gated", 27, target, linear("gated", "4")),
        rewrites("LinearAttention delta", 27, target, linear("delta", beta="2", past=True)),
        rewrites("LinearAttention gated delta", 27, target, linear("gated_delta", "2", "1", past=True)),
    )
]


ROWS = [*ROTARY, *SCATTER, *CONV, *LINEAR]

test_rows = each_of(ROWS)


RANDOM = np.random.default_rng(0)


def drawn(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


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


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("target", [22, 9])
def test_a_cache_for_the_whole_head(target: int, interleaved: int, *, positions: bool) -> None:
    """The text that brought RotaryEmbedding, with onnx 1.18, took the first columns of a cache that is too wide."""
    attributes = f"rotary_embedding_dim=4,interleaved={interleaved}"
    wide, narrow = (
        onnx_convert.convert(model(rotary(attributes, half, positions=positions), 23), to=target).model
        for half in (4, 2)
    )
    feeds = {name: array for name, array in feeds_for(wide).items() if name != "p"}
    feeds |= {name: np.array(value) for name, value in POSITIONS.items() if positions}
    cut = {name: value[..., :2] if name in "cs" else value for name, value in feeds.items()}
    assert (run(wide, feeds)[0] == run(narrow, cut)[0]).all()


@pytest.mark.parametrize(("batch", "steps"), [(0, 3), (2, 0)])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("target", [20, 9])
def test_nothing_to_decode(batch: int, steps: int, target: int, *, known: bool) -> None:
    """No member of a batch, or no step: onnxruntime runs what comes out, and the state stays what it was."""

    def computed(formals: dict[str, tuple[int, ...]], results: str, call: str, opset: int) -> list[Any]:
        sizes = {
            name: ",".join(map(str, shape) if known or name == "w" else (f"{name}{axis}" for axis in range(len(shape))))
            for name, shape in formals.items()
        }
        graph = f"({', '.join(f'float[{sizes[name]}] {name}' for name in formals)}) => ({results}) {{ {call} }}"
        return run(onnx_convert.convert(model(graph, opset), to=target).model, feeds := drawn(**formals)), feeds

    x, table = (batch, steps, 16), (batch, steps, 4)
    for interleaved in (0, 1):
        call = f"y = RotaryEmbedding<num_heads=2,interleaved={interleaved}>(x, c, s)"
        (y,), _ = computed({"x": x, "c": table, "s": table}, "float[a,b,c] y", call, 23)
        assert y.shape == x
    call = "y, t = CausalConvWithState(x, w, , p)"
    shapes = {"x": (batch, 4, steps), "w": (4, 1, 3), "p": (batch, 4, 2)}
    (y, state), feeds = computed(shapes, "float[a,b,c] y, float[d,e,f] t", call, 27)
    assert y.shape == shapes["x"]
    np.testing.assert_array_equal(state, np.concatenate([feeds["p"], feeds["x"]], axis=2)[..., -2:])
    shapes = {name: (batch, steps, size) for name, size in {"q": 8, "k": 4, "v": 6, "g": 2, "b": 2}.items()}
    call = 'y, t = LinearAttention<q_num_heads=4,kv_num_heads=2,update_rule="gated_delta">(q, k, v, p, g, b)'
    outputs = "float[a,b,c] y, float[d,e,f,g] t"
    (y, state), feeds = computed({**shapes, "p": (batch, 2, 2, 3)}, outputs, call, 27)
    assert y.shape == (batch, steps, 12)
    np.testing.assert_array_equal(state, feeds["p"])
