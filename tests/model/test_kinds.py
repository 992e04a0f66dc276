# SPDX-License-Identifier: Apache-2.0
"""Nodes are divided into kinds by all that a verdict on them depends on, and by nothing else."""

from __future__ import annotations

import pytest
from onnx import ModelProto
from texts import model

from onnx_convert.model.kinds import Known
from onnx_convert.model.validation import examine, members


def kinds_of(source: ModelProto) -> list[str]:
    """Returns the first output of the first node of each kind."""
    return [node.output[0] for node in examine(source, "").kinds.first.values()]


def told(source: ModelProto, output: str) -> list[Known | None]:
    """Returns what is certain of the inputs of the node with that output, of a Constant also of its output."""
    kinds = examine(source, "").kinds
    places = next(kind[-1] for kind, node in members(source, kinds.first) if node.output[0] == output)
    return [kinds.known[place] if place is not None else None for place in places]


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("a = Relu(x) b = Relu(a) c = Relu(b) y = Neg(c)", ["a", "b", "y"]),  # of x the type is certain
        ("a = Neg(x) b = Softmax<axis=0>(a) c = Softmax<axis=1>(b) y = Softmax<axis=0>(c)", ["a", "b", "c"]),
        ("a = Neg(x) b, m = Dropout(a) c = Dropout(b) y = Dropout(c)", ["a", "b", "c"]),
        ("a = Neg(x) b = Add(a, k) c = Add(b, k) d = Add(c, l) y = Add(d, c)", ["a", "b", "y"]),  # k and l are alike
        ("a = Neg(x) b = Mul(a, k) y = Mul(a, w)", ["a", "b", "y"]),  # but w is not
    ],
)
def test_kinds(nodes: str, first: list[str]) -> None:
    graph = "(float[2,3] x) => (float[2,3] y) <float[3] k = {1,2,3}, float[3] l = {4,5,6}, float w = {1}>"
    assert kinds_of(model(f"{graph} {{ {nodes} }}", 13)) == first


LONG = "tensor(int64)"
FLOAT = "tensor(float)"


def test_what_is_certain_of_inputs() -> None:
    source = model(
        """(float[2,N] x, float[1] free) => (float y) <int64[2] s = {3, 4}, float[2] w = {1, 2}>
        { c = Constant<value_ints = [7, 8]>() y = Concat<axis = 0>(x, s, w, c, late) late = Neg(free) }""", 13,
    )  # fmt: skip
    constant = Known(LONG, (2,), (7, 8))
    assert told(source, "y") == [Known(FLOAT, (2, None)), Known(LONG, (2,), (3, 4)), Known(FLOAT, (2,)), constant, None]
    assert told(source, "c") == [constant]


@pytest.mark.parametrize(("version", "elements"), [(3, (3, 4)), (4, None)])
def test_what_a_caller_may_replace_has_no_certain_elements(version: int, elements: tuple[int, ...] | None) -> None:
    source = model("(float[2] x, int64[2] s) => (float y) <int64[2] s = {3, 4}> { y = Reshape(x, s) }", 8, ir=version)
    assert told(source, "y") == [Known(FLOAT, (2,)), Known(LONG, (2,), elements)]


def test_what_is_certain_in_subgraphs() -> None:
    """A branch sees what is around it, and nothing of another branch, in which a name may mean something else."""
    source = model(
        """(bool c, float[2] x) => (float y) <int64[1] i = {0}> {
            y = If(c) <
                then_branch = t () => (float a) <int64[1] k = {1}> { v = Constant<value_int = 5>()
                    w = If(c) <then_branch = tt () => (float f) { f = Concat<axis = 0>(x, i, k, v) },
                               else_branch = te () => (float g) { k2 = Identity(x) g = Neg(k2) }>
                    a = Max(x, i, k, v) },
                else_branch = e () => (float b) { k = Neg(x) v = Abs(x) b = Min(x, i, k, v) }>
            z = Sum(k0, x) k0 = Neg(x) }""", 13,
    )  # fmt: skip
    around = [Known(FLOAT, (2,)), Known(LONG, (1,), (0,))]
    inside = [*around, Known(LONG, (1,), (1,)), Known(LONG, (), (5,))]
    assert told(source, "f") == inside
    assert told(source, "a") == inside
    assert told(source, "b") == [*around, None, None]
    assert told(source, "g") == [None]


def test_an_input_of_a_subgraph_hides_what_is_around_it() -> None:
    source = model(
        """(int64 n, bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            y = Loop(n, c, x) <body = b (int64 i, bool go, float[2] w) => (bool on, float[2] r)
                { on = Identity(go) r = Add(w, x) }>
            z = Mul(w, x) }""", 13,
    )  # fmt: skip
    assert told(source, "r") == [Known(), Known(FLOAT, (2,))]
    assert told(source, "z") == [Known(FLOAT, (2,)), Known(FLOAT, (2,))]


def test_bodies_know_nothing_of_each_other() -> None:
    """And a node in one is never of the kind of a node in another, whose opsets may be others."""
    function = '<domain: "f", opset_import: ["" : 13]> F (w) => (v) { v = Neg(w) }'
    source = model("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(w) y = f.F(a) }", 13, function, f=1)
    assert told(source, "a") == [Known(FLOAT, (2,))]
    assert told(source, "v") == [None]
    assert "v" in kinds_of(source)


def test_members_are_all_nodes_of_a_kind_in_order() -> None:
    source = model(
        """(bool c, float[2] x) => (float y) { a = Neg(x) b = Abs(x) d = Neg(x) y = If(c) <
            then_branch = t () => (float e) { e = Neg(x) }, else_branch = u () => (float f) { f = Abs(x) }> }""", 13,
    )  # fmt: skip
    first = {node.output[0]: kind for kind, node in examine(source, "").kinds.first.items()}
    assert [(kind, node.output[0]) for kind, node in members(source, [first["a"]])] == [
        (first["a"], name) for name in ("a", "d", "e")
    ]
