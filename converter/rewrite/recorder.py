# SPDX-License-Identifier: Apache-2.0
"""Takes down what one rewrite asks about its surroundings, and the answers, so that it can be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_convert.rewrite.values import content_of, content_of_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy
    from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto

    from onnx_convert.analysis.facts import Facts
    from onnx_convert.rewrite.values import Producer, ValueFacts

    Array = numpy.ndarray[Any, Any]
    Question = Callable[[ValueFacts, str], Any]  # about a value; its answers can be compared


def type_of(facts: ValueFacts, name: str) -> TypeProto | None:
    """Asks for the type of a value."""
    return facts.type_of(name)


def type_str(facts: ValueFacts, name: str) -> str:
    """Asks for the type of a value as schemas spell it."""
    return facts.type_str(name)


def constant(facts: ValueFacts, name: str) -> Any:
    """Asks for the elements that a value has at every run."""
    array = facts.constant(name)
    return None if array is None else content_of(array)


def foldable(facts: ValueFacts, name: str) -> Any:
    """Returns the elements of a value, at every run, if they are few."""
    array = facts.foldable(name)
    return None if array is None else content_of(array)


def literal(facts: ValueFacts, name: str) -> Any:
    """Asks for the elements of a value that the model spells out."""
    tensor = facts.literal(name)
    return None if tensor is None else content_of_tensor(tensor)


def is_read(facts: ValueFacts, name: str) -> bool:
    """Asks whether a value is used."""
    return facts.is_read(name)


class Recorder:
    """Answers from the facts of a graph, and takes down what is asked about the values of one node.

    `answers` holds the questions that another node can be asked as well. `is_complete` says that there were no others.
    """

    def __init__(self, facts: ValueFacts, node: NodeProto) -> None:
        self.answers: dict[tuple[Question, str], Any] = {}
        self.is_complete = True
        self._facts = facts
        self._names = frozenset((*node.input, *node.output))

    def _take_down(self, question: Question, name: str, answer: Any) -> None:
        if name in self._names:
            self.answers[question, name] = answer
        else:
            self.is_complete = False

    def type_of(self, name: str) -> TypeProto | None:
        answer = self._facts.type_of(name)
        self._take_down(type_of, name, answer)
        return answer

    def type_str(self, name: str) -> str:
        answer = self._facts.type_str(name)
        self._take_down(type_str, name, answer)
        return answer

    def constant(self, name: str) -> Array | None:
        answer = self._facts.constant(name)
        self._take_down(constant, name, None if answer is None else content_of(answer))
        return answer

    def foldable(self, name: str) -> Array | None:
        answer = self._facts.foldable(name)
        self._take_down(foldable, name, None if answer is None else content_of(answer))
        return answer

    def literal(self, name: str) -> TensorProto | None:
        answer = self._facts.literal(name)
        self._take_down(literal, name, None if answer is None else content_of_tensor(answer))
        return answer

    def is_read(self, name: str) -> bool:
        answer = self._facts.is_read(name)
        self._take_down(is_read, name, answer)
        return answer

    # ---- questions that are about other nodes too

    def is_of_model(self, name: str) -> bool:
        self.is_complete = False
        return self._facts.is_of_model(name)

    def producer(self, name: str) -> Producer | None:
        self.is_complete = False
        return self._facts.producer(name)

    def graph(self) -> GraphProto | FunctionProto:
        self.is_complete = False
        return self._facts.graph()

    def types_within(self, node: NodeProto, attribute: str) -> Facts:
        self.is_complete = False
        return self._facts.types_within(node, attribute)
