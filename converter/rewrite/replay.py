# SPDX-License-Identifier: Apache-2.0
"""Remembers how a node was rewritten, for the next one like it.

A model has few kinds of nodes and many of each. What a node becomes follows from its attributes, from which inputs and
outputs it has, and from the answers that adapters and the legality check got about its values. So the questions of one
rewrite are taken down with their answers; a node that would get the same answers becomes the same nodes under its own
names, and nobody is asked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx_convert.model.node_template import NodeTemplate, holds_graph
from onnx_convert.rewrite import recorder
from onnx_convert.rewrite.constants import key_of
from onnx_convert.spec.types import type_str

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy
    from onnx import NodeProto, TypeProto

    from onnx_convert.model.node_list import NewNodes
    from onnx_convert.model.node_template import Kind, NodeParts
    from onnx_convert.report import Step
    from onnx_convert.rewrite.constants import Key
    from onnx_convert.rewrite.draft import Draft
    from onnx_convert.rewrite.recorder import Question, Recorder
    from onnx_convert.rewrite.scope import Scope

    Array = numpy.ndarray[Any, Any]

_KEPT: Final = 8  # replays whose nodes differ in the answers alone


class _Replay(NamedTuple):
    """The outcome for a node of one kind if it gets these answers. Places are those of names among its inputs and
    outputs; the names of new constants and values are given by what they add to the name of the node."""

    answers: tuple[tuple[Question, int, Any], ...]
    template: NodeTemplate  # whose names are the constants, the new values, the new nodes
    constants: tuple[tuple[Key, Array, str], ...]
    used: tuple[int, ...]  # the constants that the new nodes use
    endings: tuple[str, ...]  # first those of values, then those of nodes
    values: int
    steps: tuple[Step, ...]
    plain: bool
    orphaned: tuple[int, ...]  # inputs that the new nodes do not use
    made: tuple[int, ...]  # outputs that somebody makes
    stale_value_info: tuple[int, ...]  # and those that nobody makes any more, as nobody reads them


class Followed(NamedTuple):
    """The outcome for a node: new nodes and the values that they make. `used` are the new constants that they use; None
    if the nodes are not plain, and have to be looked into. `orphaned` are inputs that they do not use."""

    nodes: NewNodes
    values: list[str]
    steps: tuple[Step, ...]
    used: Sequence[str] | None
    orphaned: Sequence[str]


class Replays:
    """The replays that one conversion has learnt."""

    def __init__(self) -> None:
        self._by_kind: dict[tuple[int, Kind], list[_Replay]] = {}

    def follow(self, subject: NodeParts, opset: int, scope: Scope) -> Followed | None:
        """Returns what the node becomes, if one like it was rewritten before and got the answers that this one gets."""
        replays = self._by_kind.get((opset, subject.kind), [])
        for index in range(len(replays) - 1, -1, -1):
            replay = replays[index]
            for question, place, answer in replay.answers:
                if question(scope.facts, subject.names[place]) != answer:
                    break
            else:
                replays.append(replays.pop(index))  # the next node is likely to be like this one
                return _write(replay, subject, scope)
        return None

    def learn(
        self,
        subject: NodeParts,
        opset: int,
        nodes: list[NodeProto],
        bearer: NodeProto | None,
        steps: tuple[Step, ...],
        recorder: Recorder,
        draft: Draft,
        *,
        plain: bool,
    ) -> None:
        """Remembers what became of a node, unless that depends on more than was taken down."""
        if not recorder.is_complete or draft.states_types:
            return
        if any(new.op_type == "Constant" or holds_graph(new) for new in nodes):
            return
        own = [*subject.names, ""]
        named = dict.fromkeys(name for new in nodes for name in (*new.input, *new.output) if name not in own)
        constants = draft.shared
        fresh = [name for name in named if name not in constants]
        fresh_nodes = [new.name for new in nodes if new is not bearer and new.name]
        hints = [hint for _, hint in constants.values()]
        base = subject.base
        if not all(name.startswith(base) for name in (*fresh, *fresh_nodes, *hints)):
            return
        taken = {name for new in nodes for name in new.input}
        made = {name for new in nodes for name in new.output} - {""}
        inputs, outputs = subject.names[: subject.inputs], subject.names[subject.inputs :]
        replay = _Replay(
            answers=tuple(_answers(recorder, own)),
            template=NodeTemplate(nodes, bearer, [*own, *constants, *fresh, *fresh_nodes]),
            constants=tuple((key_of(array), array, hint.removeprefix(base)) for array, hint in constants.values()),
            used=tuple(place for place, name in enumerate(constants) if name in named),
            endings=tuple(name.removeprefix(base) for name in (*fresh, *fresh_nodes)),
            values=len(fresh),
            steps=steps,
            plain=plain,
            orphaned=tuple(place for place, name in enumerate(inputs) if name and name not in taken),
            made=tuple(place for place, name in enumerate(outputs, len(inputs)) if name in made),
            stale_value_info=tuple(
                place for place, name in enumerate(outputs, len(inputs)) if name and name not in made
            ),
        )
        replays = self._by_kind.setdefault((opset, subject.kind), [])
        del replays[: 1 - _KEPT]
        replays.append(replay)


def _answers(taken_down: Recorder, names: list[str]) -> list[tuple[Question, int, Any]]:
    """Returns the questions with the places of their names; without those that another one answers as well."""
    answers = taken_down.answers
    return [
        (question, names.index(name), answer)
        for (question, name), answer in answers.items()
        if question is not recorder.type_str or not _tells(answers.get((recorder.type_of, name)), answer)
    ]


def _tells(kind: TypeProto | None, text: str) -> bool:
    """Returns whether the type of a value, which was asked for as well, has this type_str."""
    return kind is not None and type_str(kind) == text


def _write(replay: _Replay, subject: NodeParts, scope: Scope) -> Followed:
    base, names = subject.base, subject.names
    shared = scope.constants
    constants = [shared.find(key) or shared.share(array, base + ending) for key, array, ending in replay.constants]
    fresh = scope.session.names.all_fresh([base + ending for ending in replay.endings])
    nodes = replay.template.fill(subject, [*constants, *fresh])
    if replay.stale_value_info:
        scope.patch.stale_value_info.update([names[place] for place in replay.stale_value_info])
    orphaned = [names[place] for place in replay.orphaned]
    values = fresh[: replay.values] + [names[place] for place in replay.made]
    used = [constants[place] for place in replay.used] if replay.plain else None
    return Followed(nodes, values, replay.steps, used, orphaned)
