# SPDX-License-Identifier: Apache-2.0
"""Remembers how a node was rewritten, for the next one like it.

A model has few kinds of nodes and many of each. What a node becomes follows from its attributes, from which inputs and
outputs it has, and from the answers that adapters and the legality check got about its values. So the questions of one
rewrite are taken down with their answers; a node that would get the same answers becomes the same nodes under its own
names, and nobody is asked again.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx import AttributeProto, NodeProto

from onnx_convert.model.graphs import OWN, name_of, own_of
from onnx_convert.model.wire import BYTES, text_value, varint
from onnx_convert.spec import opsets
from onnx_convert.spec.types import type_str

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy
    from onnx import TypeProto

    from onnx_convert.report import Step
    from onnx_convert.rewrite.recorder import Recorder
    from onnx_convert.rewrite.scope import Scope

    Array = numpy.ndarray[Any, Any]

Key = tuple[int, int, object, bool, bytes]  # opset, inputs, which names are the same, has it a name, the rest

_PLAIN: Final = frozenset(
    (
        AttributeProto.INT,
        AttributeProto.INTS,
        AttributeProto.FLOAT,
        AttributeProto.FLOATS,
        AttributeProto.STRING,
        AttributeProto.STRINGS,
    )
)
_KEPT: Final = 8  # replays whose nodes differ in the answers alone
_LARGE: Final = 1 << 16  # bytes; nodes of so many, with trees in their attributes, come one by one
_INPUT, _OUTPUT, _NAME = (
    varint(NodeProto.DESCRIPTOR.fields_by_name[field].number << 3 | BYTES) for field in ("input", "output", "name")
)


class Subject(NamedTuple):
    """A node taken apart. Two nodes of the same key differ only in their names and in what is their own."""

    key: Key
    base: str  # how people find it
    names: list[str]  # of its inputs and outputs
    values: list[bytes]  # the same as values of fields
    own: bytes  # the fields that it shares with no other node: name, doc string, metadata


class _Replay(NamedTuple):
    """Every new node is a choice of pieces. These are, in this order: the literal ones, what is the subject's own, the
    names of its inputs and outputs, "", the names of the constants, and new names with these endings."""

    answers: tuple[tuple[str, int, Any], ...]
    literals: tuple[bytes, ...]
    constants: tuple[tuple[Array, str], ...]  # with their endings
    used: tuple[int, ...]  # the constants that the new nodes use
    endings: tuple[str, ...]  # first those of values, then those of nodes
    values: int
    choices: tuple[Callable[[list[bytes]], tuple[bytes, ...]], ...]
    steps: tuple[Step, ...]
    plain: bool
    orphaned: tuple[int, ...]  # inputs that the new nodes do not use
    made: tuple[int, ...]  # outputs that somebody makes
    stale_value_info: tuple[int, ...]  # and those that nobody makes any more, as nobody reads them


class Followed(NamedTuple):
    """What a node became: new nodes, serialised, and the values that they make. `used` are the new constants that they
    use; None if the nodes are not plain, and have to be looked into. `orphaned` are inputs that they do not use."""

    nodes: list[bytes]
    values: list[str]
    steps: tuple[Step, ...]
    used: Collection[str] | None
    orphaned: list[str]


def subject_of(node: NodeProto, opset: int) -> Subject | None:
    """A node taken apart; None for one that is one of its kind: with a subgraph, say."""
    if not opsets.is_simple(node.op_type, node.domain) and any(a.type not in _PLAIN for a in node.attribute):
        return None
    names: list[str] = node.input[:]  # an iterator costs more than a list
    inputs = len(names)
    names += node.output[:]
    values = [text_value(name) for name in names]
    parts: list[bytes] = []
    for value in values[:inputs]:
        parts += (_INPUT, value)
    for value in values[inputs:]:
        parts += (_OUTPUT, value)
    own, name = b"", node.name
    if name or node.HasField("name"):  # an empty one may be stated
        own = _NAME + text_value(name)
        parts.append(own)
    if node.HasField("doc_string") or node.metadata_props:
        own = own_of(node)
        node = _without(node, "doc_string", "metadata_props")
    data: bytes = node.SerializeToString()
    head = b"".join(parts)
    if not data.startswith(head) or len(data) > _LARGE:
        return None
    usual = len(set(names)) == len(names) and "" not in names
    pattern = len(names) if usual else tuple(names.index(name) if name else -1 for name in names)
    return Subject((opset, inputs, pattern, bool(name), data[len(head) :]), name or name_of(node), names, values, own)


def _without(node: NodeProto, *fields: str) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    for field in fields:
        copy.ClearField(field)
    return copy


class Replays:
    """What one conversion has learnt."""

    def __init__(self) -> None:
        self._by_key: dict[Key, list[_Replay]] = {}

    def follow(self, subject: Subject, scope: Scope) -> Followed | None:
        """What the node becomes, if one like it was rewritten before and got the answers that this one would get."""
        replays = self._by_key.get(subject.key, [])
        for index in range(len(replays) - 1, -1, -1):
            replay = replays[index]
            for what, place, answer in replay.answers:
                if scope.ask(what, subject.names[place]) != answer:
                    break
            else:
                replays.append(replays.pop(index))  # the next node is likely to be like this one
                return _write(replay, subject, scope)
        return None

    def learn(
        self,
        subject: Subject,
        written: list[NodeProto],
        bearer: NodeProto | None,
        steps: list[Step],
        recorder: Recorder,
        *,
        plain: bool,
    ) -> None:
        """Remembers what became of a node, unless that depends on more than was taken down."""
        if not recorder.general:
            return
        own = [*subject.names, ""]
        used = dict.fromkeys(name for new in written for name in (*new.input, *new.output) if name not in own)
        constants = recorder.constants
        fresh = [name for name in used if name not in constants]
        named = [new.name for new in written if new is not bearer and new.name]
        hints = [hint for _, hint in constants.values()]
        if not all(name.startswith(subject.base) for name in (*fresh, *named, *hints)):
            return
        every = [*own, *constants, *fresh, *named]
        literals = [_INPUT, _OUTPUT, _NAME, *(_rest(new, bears=new is bearer) for new in written)]
        first = len(literals) + 1  # of the names among the pieces
        choices = []
        for index, new in enumerate(written):
            chosen = [piece for name in new.input for piece in (0, first + every.index(name))]
            chosen += [piece for name in new.output for piece in (1, first + every.index(name))]
            if new is bearer:
                chosen.append(len(literals))
            elif new.name:
                chosen += (2, first + every.index(new.name))
            choices.append(itemgetter(*chosen, 3 + index))
        taken = {name for new in written for name in new.input}
        inputs = subject.key[1]
        answers = [
            (what, own.index(name), answer)
            for (what, name), answer in recorder.answers.items()
            if what != "type_str" or not _tells(recorder.answers.get(("type", name)), answer)
        ]
        made = {name for new in written for name in new.output} - {""}
        replays = self._by_key.setdefault(subject.key, [])
        del replays[: 1 - _KEPT]
        replays.append(
            _Replay(
                tuple(answers),
                tuple(literals),
                tuple((array, hint[len(subject.base) :]) for array, hint in constants.values()),
                tuple(place for place, name in enumerate(constants) if name in used),
                tuple(name[len(subject.base) :] for name in (*fresh, *named)),
                len(fresh),
                tuple(choices),
                tuple(steps),
                plain,
                tuple(place for place, name in enumerate(subject.names[:inputs]) if name and name not in taken),
                tuple(place for place, name in enumerate(own[inputs:-1], inputs) if name in made),
                tuple(place for place, name in enumerate(own[inputs:-1], inputs) if name and name not in made),
            )
        )


def _tells(kind: TypeProto | None, text: str) -> bool:
    """Returns whether the type of a value, which was asked for as well, has this type_str."""
    return kind is not None and type_str(kind) == text


def _rest(node: NodeProto, *, bears: bool) -> bytes:
    """What a new node is apart from its names, and, if it bears what is the subject's own, apart from that."""
    own = OWN if bears else ("name",)
    data: bytes = _without(node, "input", "output", *own).SerializeToString()
    return data


def _write(replay: _Replay, subject: Subject, scope: Scope) -> Followed:
    base = subject.base
    constants = [scope.share(array, base + ending) for array, ending in replay.constants]
    fresh = scope.session.names.all_fresh([base + ending for ending in replay.endings])
    pieces = [
        *replay.literals,
        subject.own,
        *subject.values,
        b"\0",
        *map(text_value, constants),
        *map(text_value, fresh),
    ]
    nodes = [b"".join(choose(pieces)) for choose in replay.choices]
    scope.patch.stale_value_info.update([subject.names[place] for place in replay.stale_value_info])
    orphaned = [subject.names[place] for place in replay.orphaned]
    values = fresh[: replay.values] + [subject.names[place] for place in replay.made]
    used = [constants[place] for place in replay.used] if replay.plain else None
    return Followed(nodes, values, replay.steps, used, orphaned)
