# SPDX-License-Identifier: Apache-2.0
"""A draft leaves no trace if it is refused, and all that it asks is on record."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto
from texts import assert_same_numbers, model, operators

import onnx_convert
import onnx_convert.adapters
from onnx_convert.analysis.facts import Facts
from onnx_convert.model.functions import FunctionKey
from onnx_convert.model.names import Names
from onnx_convert.model.source import SourceModel
from onnx_convert.options import Options
from onnx_convert.rewrite import registry
from onnx_convert.rewrite.context import Session
from onnx_convert.rewrite.driver import Driver
from onnx_convert.rewrite.legalizer import Legalizer
from onnx_convert.rewrite.node import Refuse
from onnx_convert.rewrite.recorder import Recorder
from onnx_convert.rewrite.scope import Scope
from onnx_convert.rewrite.values import ValueFacts

OWN = "org.rewrite"


@registry.upgrade("Torn", at=2, domain=OWN)
def write_and_refuse(node, op):
    """Refuses after all has been written, in several graphs."""
    op.node("Kept", op.const([1, 2]), at=1, domain="org.other")
    body = op.graph("body", [TensorProto.FLOAT], lambda inner, x: [inner.Add(x, inner.const(1, TensorProto.FLOAT))])
    op.Loop(None, op.const(True, TensorProto.BOOL), op.const(1, TensorProto.FLOAT), body=body)
    return node.refuse("it was not to be")


@registry.upgrade("Half", at=2, domain=OWN)
def write_what_is_refused(node, op):
    """Writes a node that has no way."""
    return op.node("Stuck", op.Relu(node.input(0)), at=1, domain=OWN)[0]


registry.impossible("Stuck", at=2, direction="up", domain=OWN, reason="nobody knows how")


def scope_of(source: ModelProto, target: dict[str, int]) -> tuple[Legalizer, Scope]:
    opened = SourceModel(source, "model")
    session = Session(source.ir_version, source.ir_version, Names(opened.index.names), opened.elements, set)
    functions: dict[FunctionKey, onnx.FunctionProto] = {}
    driver = Driver(session, target, Options(), functions, simple=False)
    scope = driver.scope(source.graph, Facts(lambda: source.graph), opened.imports.main)
    return Legalizer(target, Options(), functions), scope


def own(operator: str) -> ModelProto:
    return model(f"(float[2] x) => (float[2] y) {{ y = {OWN}.{operator} (x) }}", 17, org_rewrite=1)


@pytest.mark.parametrize(
    ("operator", "reason", "direction"),
    [("Torn", "it was not to be", "up"), ("Half", "what replaces it needs Stuck: nobody knows how", "up")],
)
@pytest.mark.parametrize("ir", [8, 3])
def test_a_refused_rewrite_leaves_no_trace(operator: str, reason: str, direction: str, ir: int) -> None:
    source = own(operator)
    source.ir_version = ir
    legalizer, scope = scope_of(source, {"": 17, OWN: 2})
    with pytest.raises(Refuse) as caught:
        legalizer.legalize(source.graph.node[0], 1, scope)
    assert (caught.value.reason, caught.value.boundary, caught.value.direction) == (reason, 2, direction)
    assert not scope.facts.written.entries()
    assert not scope.constants.all_tensors()
    scope.finish()
    assert not scope.patch.any_change
    assert not scope.patch.domains


def test_what_a_refused_rewrite_wrote_is_not_taken_for_the_value() -> None:
    """Below opset 6 an addition of integers is refused, in the form that it has there; but this one is a constant."""
    source = model(
        """(float[2,2] x) => (float[2,2] y, float[2,2] z) <int64[2,2] p = {1, 2, 3, 4}, int64 q = {5}>
           { y = Relu (x) s = Add (p, q) z = Cast <to = 1> (s) }""",
        8,
    )
    converted = onnx_convert.convert(source, to=5, types="cast").model
    assert_same_numbers(source, converted)
    assert "Add" not in operators(converted)


QUESTIONS = [name for name, _ in inspect.getmembers(ValueFacts, inspect.isfunction) if not name.startswith("_")]


class Everything:
    """Facts that answer any question, and hear which."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __getattr__(self, question: str) -> Any:
        def answer(*_: object) -> Any:
            self.heard.append(question)
            return np.zeros(1) if question == "constant" else None

        return answer


def asked(question: str, of: Any, name: str) -> None:
    node = NodeProto(output=[name])
    arguments = {"graph": (), "types_within": (node, "body")}.get(question, (name,))
    getattr(of, question)(*arguments)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", ["x", "y", "elsewhere"])
def test_every_question_is_taken_down(question: str, name: str) -> None:
    """Either with its answer, or as one that nobody could be asked again."""
    facts = Everything()
    recorder = Recorder(facts, NodeProto(input=["x"], output=["y"]))  # type: ignore[arg-type]
    asked(question, recorder, name)
    assert facts.heard == [question]
    taken = [(asking.__name__, of) for asking, of in recorder.answers]
    assert taken == [(question, name)] if recorder.is_complete else not taken
    assert recorder.is_complete <= (name != "elsewhere")


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_draft_asks_the_graph_only_about_values_that_are_not_its_own(question: str) -> None:
    source = own("Torn")
    _, scope = scope_of(source, {"": 17, OWN: 2})
    facts = Everything()
    draft = scope.draft(facts, source.graph.node[0])  # type: ignore[arg-type]
    draft.write(NodeProto(op_type="Relu", input=["x"], output=["new"]), 17)
    constant = draft.share(np.zeros(2, np.int64), "constant")
    for name in (constant, "new"):
        asked(question, draft, name)
    if question in ("graph", "types_within"):
        assert facts.heard == [question] * 2
    elif question == "is_of_model":
        assert len(facts.heard) <= 1
    else:
        assert set(facts.heard) <= {
            "type_of",
            "type_str",
            "literal",
        }  # of x, from which the type of the new one follows
    facts.heard.clear()
    asked(question, draft, "x")
    assert question in facts.heard
