# SPDX-License-Identifier: Apache-2.0
"""Takes down the questions of one rewrite with their answers, so that it can be replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from onnx import NodeProto

    Array = numpy.ndarray[Any, Any]

Question = tuple[str, str]  # what is asked, and the name of the value


class Recorder:
    """Takes down what is asked about the values of one node while it is rewritten.

    `own` are the values that are being written, about which a replay need not ask, and `constants` those among them
    that may have been there before, with the names that they were to have. `general` says that no other value of the
    graph was asked about, so that the answers tell everything.
    """

    def __init__(self, node: NodeProto) -> None:
        self.names = frozenset((*node.input, *node.output))
        self.own: set[str] = set()
        self.answers: dict[Question, Any] = {}
        self.constants: dict[str, tuple[Array, str]] = {}
        self.general = True

    def shared(self, name: str, array: Array, hint: str) -> None:
        """A constant that the rewrite needs, perhaps only on the way, under the name that it has in this scope."""
        self.own.add(name)
        self.constants.setdefault(name, (array, hint))

    def heard(self, what: str, name: str, answer: Any) -> None:
        """An answer; the first one counts, given before anything was written."""
        if name in self.names:
            self.answers.setdefault((what, name), answer)
        elif name not in self.own:
            self.general = False
