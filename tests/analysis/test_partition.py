# SPDX-License-Identifier: Apache-2.0
"""A long graph is inferred and checked chunk by chunk: that finds what the whole tells, and whatever is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper
from texts import model

import onnx_convert
from onnx_convert.analysis import inference, partition, view
from onnx_convert.analysis.view import View
from onnx_convert.model import validation
from onnx_convert.model.node_list import Chunk, NewNodes, NodeList
from onnx_convert.model.source import SourceModel
from onnx_convert.planning import judging

OPSET = 17


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a view could be inferred chunk by chunk, each time that one had several."""
    found: list[bool] = []
    inferred = partition.inferred

    def noting(seen: View, *given: Any) -> GraphProto | None:
        answer = inferred(seen, *given)
        if len(seen.chunks) > 1:
            found.append(answer is not None)
        return answer

    monkeypatch.setattr(partition, "inferred", noting)
    return found


def cut(source: ModelProto, length: int, monkeypatch: pytest.MonkeyPatch) -> View:
    """Returns the view of a model in chunks of so many nodes."""
    monkeypatch.setattr(validation, "CHUNK", length)
    return view.of_source(SourceModel(source, "model"))


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
    "an input left out": "(float[2,3] x) => (float[2,3] z) <float m = {1}> { a = Relu(x) b = Clip(a, , m) z = Neg(b) }",
    "an output of which less is stated twice": """(float[2,3] x) => (float[M,3] b, float[2,3] z)
                                                 <float[K,L] b> { a = Relu(x) b = Neg(a) c = Abs(b) z = Exp(c) }""",
    "outputs left out": """(float[2,3,4] x) => (float[2,3,4] z)
        { a = Relu(x) b, , = LayerNormalization(a, a) c, , = LayerNormalization(b, b) z = Add(c, a) }""",
}  # fmt: skip


@pytest.mark.parametrize("graph", ALONE.values(), ids=ALONE)
@pytest.mark.parametrize("length", [1, 2])
def test_a_chunk_finds_what_the_whole_tells(
    graph: str, length: int, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = cut(model(graph, OPSET), length, monkeypatch)
    whole = inference.strictly(seen.serialised())
    findings, found = judging.find(seen)
    assert not findings and found is not None
    assert types(found) == types(whole)
    assert len(found.input) == len(whole.input) and len(found.initializer) == len(whole.initializer)
    unchecked = inference.in_chunks(cut(model(graph, OPSET), length, monkeypatch), check_type=False)
    assert unchecked is not None
    assert types(unchecked.graph) == types(whole)
    assert outcomes == [True, True]


SHAPE = "(float[2,3] x) => (float[3,2] z) { s = Shape(x) a = Expand(x, s) b = Neg(a) z = Transpose(b) }"
TOGETHER = {
    "a shape": SHAPE,
    "a number": "(float[2,3] x) => (int64 z) { s = Size(x) z = Neg(s) }",
    "a vector of which nobody knows the elements": "(float[2] x) => (float[2] z) { a = Relu(x) z = Neg(a) }",
    "a dimension without a name": "(float[?,3] x) => (float[?,3] z) { a = Relu(x) z = Neg(a) }",
    "a dimension that inference names": "(float[2,3] x) => (float[2,K] z) { a = NonZero(x) z = Cast<to = 1>(a) }",
    "an input that is an output": "(float[2,3] x) => (float[2,3] z, float[2,K] x) { a = Relu(x) z = Add(a, x) }",
    "a constant that is an output": """(float[2,3] x) => (float[2,3] z, float[K] k) <float[3] k = {1, 2, 3}>
                                       { a = Relu(x) z = Add(a, k) }""",
    "an output with one": "(float[2,3] x) => (int64[2,?] z) { a = Relu(x) z = NonZero(a) }",
    "a sequence": "(float[2,3] x) => (float[2,3] z) <int64 i = {0}> { a = SequenceConstruct(x) z = SequenceAt(a, i) }",
}


@pytest.mark.parametrize("graph", TOGETHER.values(), ids=TOGETHER)
def test_what_a_type_does_not_tell_keeps_chunks_together(
    graph: str, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = cut(model(graph, OPSET), 1, monkeypatch)
    whole = inference.strictly(seen.serialised())
    findings, found = judging.find(seen)
    assert outcomes == [False]
    assert not findings and found is not None
    assert types(found) == types(whole)


def test_a_shape_within_a_chunk(outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    findings, _ = judging.find(cut(model(SHAPE, OPSET), 2, monkeypatch))
    assert not findings and outcomes == [True]


@pytest.mark.parametrize("dtype", ["INT64", "FLOAT", "UINT8"])
def test_a_shape_of_higher_rank(dtype: str, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Inference follows its elements there too, whatever their type."""
    graph = f"""(float[2,3] x, float[6] y) => (float[N,M] z) <int64[1] p = {{0}}>
        {{ s = Shape(x) a = Cast<to = {TensorProto.DataType.Value(dtype)}>(s) b = Unsqueeze(a, p)
           c = Squeeze(b, p) d = Cast<to = {TensorProto.INT64}>(c) z = Reshape(y, d) }}"""
    findings, found = judging.find(cut(model(graph, OPSET), 3, monkeypatch))
    assert outcomes == [False]
    assert not findings and found is not None
    assert [dim.dim_value for dim in types(found)["z"].tensor_type.shape.dim] == [2, 3]


@pytest.mark.parametrize("field", ["value_info", "output", "initializer"])
def test_what_is_stated_twice(field: str, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """An initializer may be there twice if it is an input too."""
    source = model(CHAIN.replace("x)", "x, float[2] k)", 1), OPSET, ir=3)
    for rows in (3, 2):
        stated = {"dims": [rows], "data_type": 1, "float_data": [0] * rows} if field == "initializer" else {}
        name = "k" if stated else "b"
        getattr(source.graph, field).add(name=name, **stated or {"type": helper.make_tensor_type_proto(1, [rows, 3])})
    seen = cut(source, 1, monkeypatch)
    assert judging.find(seen)[0] == judging.find(View(seen.head, seen.nodes))[0]
    assert outcomes == [False]


def test_nodes_that_are_not_in_order(outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stated of an output is known before the output is made."""
    graph = "(float[2,3] x) => (float[P,Q] z, float[2,3] l) { c = Cast<to = 1>(l) d = Neg(c) l = Relu(x) z = Neg(l) }"
    seen = cut(model(graph, OPSET), 2, monkeypatch)
    assert inference.in_chunks(seen, check_type=False) is None
    assert outcomes == [False]


def test_functions_keep_a_graph_together(outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody calls this one, and nobody could."""
    source = model(CHAIN, OPSET)
    broken = source.functions.add(name="f", domain="local", input=["x"], output=["y"])
    broken.opset_import.add(domain="", version=OPSET)
    broken.node.add(op_type="Relu", input=["x"], output=["y"]).attribute.add(name="nonsense", type=2, i=1)
    findings, _ = judging.find(cut(source, 1, monkeypatch))
    assert findings and outcomes == [False]


@pytest.mark.parametrize("length", [1, 2])
def test_what_is_stated_of_a_value(length: int, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Less or more of one that is handed on, and of an input; anything of one that nobody makes."""
    source = model("(float[N,3] x) => (float[2,3] z) { a = Relu(x) b = Neg(a) c = Abs(b) z = Exp(c) }", OPSET)
    for name, rows in (("x", "L"), ("a", 2), ("b", "M"), ("nobody", 7)):
        source.graph.value_info.append(helper.make_tensor_value_info(name, 1, [rows, 3]))
    seen = cut(source, length, monkeypatch)
    whole = inference.strictly(seen.serialised())
    found = inference.in_chunks(seen)
    assert outcomes == [True] and found is not None
    assert {value.name: value.type for value in found.graph.value_info} == {v.name: v.type for v in whole.value_info}


# ---- what is wrong, as if a rewrite had done it: the chunks are those of the sound model

FAULTY = CHAIN.replace("=> (", "=> (float[2,3] b, ").replace(") {", ") <float[1] k = {1}> {")
Nodes = list[list[NodeProto]]  # of each chunk


def adds(*new: tuple[int, str, str]) -> Callable[[Nodes], None]:
    """Nodes more: in which chunk, what they use and what they make."""

    def change(nodes: Nodes) -> None:
        for index, used, made in new:
            nodes[index].append(NodeProto(op_type="Abs", input=[used], output=[made]))

    return change


def lacks(index: int) -> Callable[[Nodes], None]:
    def change(nodes: Nodes) -> None:
        del nodes[index][:]

    return change


def swapped(nodes: Nodes) -> None:
    nodes[1], nodes[2] = nodes[2], nodes[1]


def of_type(index: int, operator: str) -> Callable[[Nodes], None]:
    def change(nodes: Nodes) -> None:
        nodes[index][0].op_type = operator

    return change


def with_attribute(nodes: Nodes) -> None:
    nodes[3][0].attribute.add(name="nonsense", type=onnx.AttributeProto.INT, i=1)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(lacks(2), "topologically sorted", id="not made"),
        pytest.param(lacks(3), "topologically sorted", id="not made, used at once"),
        pytest.param(lacks(4), "Graph output 'z'", id="output not made"),
        pytest.param(lacks(1), "topologically sorted", id="output not made, used"),
        pytest.param(swapped, "topologically sorted", id="made too late"),
        pytest.param(adds((1, "a", "new"), (3, "c", "new")), "single static assignment", id="new, twice"),
        pytest.param(adds((3, "c", "a")), "single static assignment", id="handed on, twice"),
        pytest.param(adds((1, "a", "d")), "single static assignment", id="not handed on, twice"),
        pytest.param(adds((1, "a", "z")), "single static assignment", id="output, before"),
        pytest.param(adds((3, "c", "b")), "single static assignment", id="output, again"),
        pytest.param(adds((3, "c", "x")), "single static assignment", id="input, again"),
        pytest.param(adds((3, "c", "k")), "single static assignment", id="constant, again"),
        pytest.param(of_type(1, "Not"), "unsupported type", id="dtype"),
        pytest.param(of_type(0, "Shape"), "InferenceError", id="rank"),
        pytest.param(with_attribute, "nonsense", id="attribute"),
    ],
)
def test_what_is_wrong_is_found(
    change: Callable[[Nodes], None], says: str, outcomes: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = model(FAULTY, OPSET)
    sound = cut(source, 1, monkeypatch)
    nodes = [[node] for node in source.graph.node]
    change(nodes)
    for chunk in sound.chunks:
        chunk.exact = False
    faulty = View(sound.head, [GraphProto(node=own).SerializeToString() for own in nodes], sound.chunks)
    findings, _ = judging.find(faulty)
    assert outcomes == [False]
    assert any(says in finding for finding in findings)


def test_an_output_that_is_in_no_chunk(outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = cut(model(CHAIN, OPSET), 2, monkeypatch)
    seen.chunks[-1].made.remove("z")
    seen.chunks[-1].exact = False
    assert not judging.find(seen)[0]
    assert outcomes == [False]


def test_an_input_that_nobody_uses_is_checked_too(outcomes: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    source = model(CHAIN, OPSET)
    source.graph.input.add(name="untyped")
    findings, _ = judging.find(cut(source, 2, monkeypatch))
    assert findings and outcomes == [False]


# ---- in a conversion: what was done in chunks, the inference of the source, the check of the result

TWICE = "Upsample<scales = [1.0, 1.0, 2.0, 2.0]>"
CONVERSIONS = {
    "rewritten": (12, 13, "refuse", [True, True], """(float[2,3,4] x) => (float[2,3,4] z)
        { a = Relu(x) b = Softmax<axis = 1>(a) c = Neg(b) z = Add(c, a) }"""),
    "axes become attributes": (13, 12, "refuse", [True, True],
        """(float[2,3] x) => (float[2,3] z) <int64[1] p = {0}, int64[1] q = {1}>
        { a = Unsqueeze(x, p) b = Squeeze(a, p) c = Unsqueeze(b, q) d = Squeeze(c, q) z = Relu(d) }"""),
    "axes that are computed go": (13, 12, "refuse", [False, True],
        """(float[2,3] x) => (float[2,3] z) <int64[1] p = {0}, int64[1] q = {1}>
        { a = Neg(x) one = Add(p, q) b = Unsqueeze(a, one) c = Abs(b) d = Squeeze(c, one) z = Relu(d) }"""),
    "cast": (14, 12, "cast", [True, True],
        "(int8[2,3] x) => (int8[2,3] z) { a = Add(x, x) b = Mul(a, x) z = Sub(b, a) }"),
    "IR version 3": (13, 8, "refuse", [True, True],
        "(float[2,3,4] x) => (float[2,3,4] z) { a = Clip(x) b = Softmax<axis = 1>(a) z = Relu(b) }"),
    "a value becomes a constant": (14, 13, "refuse", [True, True],
        """(float[2,2] x) => (float[2,2] z) <int8[2,2] q = {1, 2, 3, 4}>
        { two = Add(q, q) a = Cast<to = 1>(two) b = Add(a, x) z = Neg(b) }"""),
    "a value of a later chunk": (14, 13, "refuse", [True, True],
        """(float[2,2] x) => (float[2,2] z) <int8[2,2] q = {1, 2, 3, 4}>
        { a = Neg(x) b = Abs(a) two = Add(q, q) c = Cast<to = 1>(two) z = Add(b, c) }"""),
    "vectors inside what a node becomes": (14, 12, "cast", [True, True],
        """(int8[3] w, float[2,3] x) => (int8[3] y, float[2,3] z)
        { a = Relu(x) b = Neg(a) y = Add(w, w) z = Abs(b) }"""),
    "an output of a later chunk": (14, 13, "refuse", [True, True],
        """(float[2,2] x) => (float[2,2] z, int8[2,2] two) <int8[2,2] q = {1, 2, 3, 4}>
        { a = Neg(x) b = Abs(a) two = Add(q, q) c = Cast<to = 1>(two) z = Add(b, c) }"""),
    "an output becomes one": (14, 13, "refuse", [True, True],
        """(float[2,2] x) => (float[2,2] z, int8[2,2] two) <int8[2,2] q = {1, 2, 3, 4}>
        { two = Add(q, q) a = Abs(x) b = Cast<to = 1>(two) z = Add(a, b) }"""),
    "types are written down": (7, 6, "refuse", [False, False], f"""(float[1,C,H,W] x) => (float[1,C,K,L] f)
        {{ a = {TWICE}(x) b = {TWICE}(a) c = {TWICE}(b) d = {TWICE}(c) e = {TWICE}(d) f = {TWICE}(e) }}"""),
    "nodes that need a look inside": (14, 6, "refuse", [False], """(float[2,3,3] x) => (int64[N,3] z)
        { a = Relu(x) b = Neg(a) c = NonZero(b) z = Transpose(c) }"""),
}  # fmt: skip


@pytest.mark.parametrize(("start", "stop", "kind", "done", "graph"), CONVERSIONS.values(), ids=CONVERSIONS)
@pytest.mark.parametrize("length", [1, 2])
def test_a_conversion_is_the_same(
    start: int,
    stop: int,
    kind: str,
    done: list[bool],
    graph: str,
    length: int,
    outcomes: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = model(graph, start)

    def outcome() -> Any:
        try:
            conversion = onnx_convert.convert(source, to=stop, types=kind)
        except onnx_convert.RefusedError as error:
            return error.refusals, error.nearest
        onnx.checker.check_model(conversion.model, full_check=True)
        return conversion.model, conversion.report.steps, conversion.report.warnings

    whole = outcome()
    assert not outcomes
    monkeypatch.setattr(validation, "CHUNK", length)
    assert outcome() == whole
    assert outcomes == done


@pytest.mark.parametrize("length", [1, 2, 1000])
def test_no_new_value_has_a_name_of_which_a_type_is_stated(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tools leave statements of values that are no more."""
    source = model("""(float[2,3,4] x) => (float[2,3,4] z)
        { a = Relu(x) b = Softmax<axis = 1>(a) c = Softmax<axis = 1>(b) z = Add(c, a) }""", 12)  # fmt: skip
    monkeypatch.setattr(validation, "CHUNK", length)
    made = {name for node in onnx_convert.convert(source, to=13).model.graph.node for name in node.output}
    new = made - {name for node in source.graph.node for name in node.output}
    assert len(new) > 2
    for name in new:
        source.graph.value_info.append(helper.make_tensor_value_info(name, 1, [7] * 5))
    converted = onnx_convert.convert(source, to=13).model
    assert new.isdisjoint(name for node in converted.graph.node for name in node.output)
    onnx.checker.check_model(converted, full_check=True)


def test_a_plan_adds_nothing_to_the_chunks_of_the_source() -> None:
    chunk = Chunk(0, ["x"], ["y"])
    nodes = NodeList(GraphProto(), [chunk])
    nodes.replace(NewNodes([NodeProto()]), ["constant"], ["z"])
    assert nodes.chunks[0].used == {"x", "constant"}
    assert nodes.chunks[0].made == {"y", "z"}
    assert (chunk.used, chunk.made) == ({"x"}, {"y"})
