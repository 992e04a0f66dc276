# SPDX-License-Identifier: Apache-2.0
"""A long graph is inferred and checked stretch by stretch: that finds what the whole tells, and whatever is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TypeProto
from texts import model

import onnx_convert
from onnx_convert import checks, inference, stretches, structure, view
from onnx_convert.view import View

OPSET = 17


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether it could be done stretch by stretch, each time that it was tried."""
    found: list[bool] = []
    inferred = stretches.inferred

    def noting(*given: Any) -> GraphProto | None:
        found.append(False)
        answer = inferred(*given)
        found[-1] = answer is not None
        return answer

    monkeypatch.setattr(stretches, "inferred", noting)
    return found


def cut(source: ModelProto, length: int, monkeypatch: pytest.MonkeyPatch) -> View:
    """The view of a model in stretches of so many nodes."""
    monkeypatch.setattr(structure, "LENGTH", length)
    return view.of_model(source, None, lambda tensor: tensor, structure.examine(source, "model"))


def types(graph: GraphProto) -> dict[str, TypeProto]:
    return {value.name: value.type for value in (*graph.value_info, *graph.output)}


# ---- what is found

CHAIN = "(float[2,3] x) => (float[2,3] z) { a = Relu(x) b = Neg(a) c = Add(a, b) d = Softmax(c) z = Mul(d, a) }"
ALONE = {
    "a chain": CHAIN,
    "a symbol of the model's own": CHAIN.replace("[2,", "[N,"),
    "an output that others use": """(float[2,3] x) => (float[2,3] a, float[2,3] c)
                                    { a = Relu(x) b = Neg(a) c = Add(a, b) }""",
    "an output of which less is stated": """(float[2,3] x) => (float[M,3] a, float[K,L] c)
                                            { a = Relu(x) b = Neg(a) c = Add(a, b) }""",
    "constants": """(float[2,3] x) => (float[1,2,3] y, float[3,2] z) <int64[1] axes = {0}, int64[2] shape = {3, 2}>
                    { a = Relu(x) y = Unsqueeze(a, axes) b = Neg(a) z = Reshape(b, shape) }""",
    "an input that is an output": """(float[2,3] x, float[4] n) => (float[2,3] z, float[4] n)
                                     { a = Relu(x) b = Neg(a) z = Abs(b) }""",
    "a constant that is an output": """(float[2,3] x) => (float[2,3] z, float[1] k) <float[1] k = {1}>
                                       { a = Relu(x) b = Neg(a) z = Abs(b) }""",
    "outputs left out": """(float[2,3,4] x, float[3] s) => (float[2,3,4] z)
                           { a = Relu(x) b, , = LayerNormalization(a, a) c = Neg(b) z = Add(c, a) }""",
    "a vector within a stretch": """(float[2,3] x) => (float[3,2] z)
                                    { s = Shape(x) a = Expand(x, s) b = Neg(a) z = Transpose(b) }""",
}  # fmt: skip


@pytest.mark.parametrize("graph", ALONE.values(), ids=ALONE)
@pytest.mark.parametrize("length", [1, 2])
def test_a_stretch_finds_what_the_whole_tells(
    graph: str, length: int, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = cut(model(graph, OPSET), length, monkeypatch)
    whole = inference.strictly(seen.serialised())
    findings, found = checks.find(seen)
    assert not findings and found is not None
    assert types(found) == types(whole)
    assert outcomes == ([length > 1] if "Shape" in graph else [True])


TOGETHER = {
    "a shape": "(float[2,3] x, float[6] y) => (float[?,?] z) { s = Shape(x) z = Reshape(y, s) }",
    "a number": "(float[2,3] x) => (int64 z) { s = Size(x) z = Neg(s) }",
    "a vector of which nobody knows the elements": "(float[2] x) => (float[2] z) { a = Relu(x) z = Neg(a) }",
    "a dimension without a name": "(float[?,3] x) => (float[?,3] z) { a = Relu(x) z = Neg(a) }",
    "a dimension that inference names": "(float[2,3] x) => (float[2,K] z) { a = NonZero(x) z = Cast<to = 1>(a) }",
    "a sequence": "(float[2,3] x) => (float[2,3] z) <int64 i = {0}> { a = SequenceConstruct(x) z = SequenceAt(a, i) }",
}


@pytest.mark.parametrize("graph", TOGETHER.values(), ids=TOGETHER)
def test_what_a_type_does_not_tell_keeps_stretches_together(
    graph: str, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = cut(model(graph, OPSET), 1, monkeypatch)
    whole = inference.strictly(seen.serialised())
    findings, found = checks.find(seen)
    assert outcomes == [False]
    assert not findings and found is not None
    assert types(found) == types(whole)


def test_what_is_stated_of_a_value_counts_in_its_own_stretch(
    outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a value that is handed on too little may be stated, and of one that nobody makes anything."""
    source = model("(float[N,3] x) => (float[2,3] z) { a = Relu(x) b = Neg(a) c = Abs(b) z = Exp(c) }", OPSET)
    for name, rows in (("a", 2), ("b", "M"), ("nobody", 7)):
        source.graph.value_info.append(onnx.helper.make_tensor_value_info(name, 1, [rows, 3]))
    seen = cut(source, 1, monkeypatch)
    whole = types(inference.strictly(seen.serialised()))
    found = inference.in_stretches(seen)
    assert outcomes == [True] and found is not None
    assert types(found) == {name: kind for name, kind in whole.items() if name != "nobody"}


# ---- what is wrong, as if a rewrite had done it: the stretches are those of the sound model

Nodes = list[list[NodeProto]]  # of each stretch


def absolute(name: str) -> NodeProto:
    return NodeProto(op_type="Abs", input=["x"], output=[name])


def without(name: str) -> Callable[[Nodes], None]:
    def change(nodes: Nodes) -> None:
        for own in nodes:
            own[:] = [node if name not in node.output else absolute("new") for node in own]

    return change


def twice(name: str) -> Callable[[Nodes], None]:
    def change(nodes: Nodes) -> None:
        nodes[1] += [absolute(name)] if name == "new" else []
        nodes[3] += [absolute(name)]

    return change


def swapped(nodes: Nodes) -> None:
    nodes[1], nodes[2] = nodes[2], nodes[1]


def of_other_type(nodes: Nodes) -> None:
    nodes[1][0].op_type = "Not"


def of_other_rank(nodes: Nodes) -> None:
    nodes[0][0].op_type = "Shape"


def with_attribute(nodes: Nodes) -> None:
    nodes[3][0].attribute.add(name="nonsense", type=onnx.AttributeProto.INT, i=1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without("b"), "topologically sorted"),
        (without("d"), "topologically sorted"),
        (without("z"), "Graph output 'z'"),
        (swapped, "topologically sorted"),
        (twice("b"), "single static assignment"),
        (twice("new"), "single static assignment"),
        (of_other_type, "unsupported type"),
        (of_other_rank, "InferenceError"),
        (with_attribute, "nonsense"),
    ],
    ids=["not made", "not made, used at once", "output not made", "made too late", "of the source, twice", "new, twice",
         "dtype", "rank", "attribute"],
)  # fmt: skip
def test_what_is_wrong_is_found(
    change: Callable[[Nodes], None], says: str, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = "(float[2,3] x) => (float[2,3] z) { a = Relu(x) b = Neg(a) c = Add(a, b) d = Softmax(c) z = Mul(d, a) }"
    source = model(graph, OPSET)
    sound = cut(source, 1, monkeypatch)
    nodes = [[node] for node in source.graph.node]
    change(nodes)
    faulty = View(sound.head, [GraphProto(node=own).SerializeToString() for own in nodes], sound.stretches)
    findings, _ = checks.find(faulty)
    assert findings and outcomes == [False]
    assert any(says in finding for finding in findings)
    assert checks.find(View(faulty.head, faulty.nodes))[0] == findings


def test_an_input_that_nobody_uses_is_checked_too(outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    source = model(CHAIN, OPSET)
    source.graph.input.add(name="untyped")
    findings, _ = checks.find(cut(source, 2, monkeypatch))
    assert findings and outcomes == [False]


# ---- in a conversion

LONG = {
    "rewritten": (12, 13, """(float[2,3,4] x) => (float[2,3,4] z)
        { a = Relu(x) b = Softmax<axis = 1>(a) c = Neg(b) z = Add(c, a) }"""),
    "axes become attributes": (13, 12, """(float[2,3] x) => (float[2,3] z) <int64[1] p = {0}, int64[1] q = {1}>
        { a = Unsqueeze(x, p) b = Squeeze(a, p) c = Unsqueeze(b, q) d = Squeeze(c, q) z = Relu(d) }"""),
    "axes that are computed go": (13, 12, """(float[2,3] x) => (float[2,3] z) <int64[1] p = {0}, int64[1] q = {1}>
        { a = Neg(x) one = Add(p, q) b = Unsqueeze(a, one) c = Abs(b) d = Squeeze(c, one) z = Relu(d) }"""),
    "cast": (14, 12, "(int8[2,3] x) => (int8[2,3] z) { a = Add(x, x) b = Mul(a, x) z = Sub(b, a) }"),
    "IR version 3": (13, 8, """(float[2,3,4] x) => (float[2,3,4] z)
        { a = Clip(x) b = Softmax<axis = 1>(a) z = Relu(b) }"""),
}  # fmt: skip


@pytest.mark.parametrize(("start", "stop", "graph"), LONG.values(), ids=LONG)
@pytest.mark.parametrize("length", [1, 2])
def test_a_conversion_is_the_same(
    start: int, stop: int, graph: str, length: int, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = model(graph, start)
    whole = onnx_convert.convert(source, to=stop, types="cast")
    assert not outcomes
    monkeypatch.setattr(structure, "LENGTH", length)
    found = onnx_convert.convert(source, to=stop, types="cast")
    assert any(outcomes)
    assert found.model == whole.model
    assert found.report.steps == whole.report.steps


def test_a_short_graph_is_one_stretch(outcomes: list[bool]) -> None:
    onnx_convert.convert(model(CHAIN.replace("Softmax(", "Softmax<axis = 0>("), 12), to=13)
    assert not outcomes
