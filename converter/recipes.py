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

from onnx_convert import opsets
from onnx_convert.facts import OWN, name_of, own_of
from onnx_convert.types import spelled
from onnx_convert.wire import BYTES, text_value, varint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import numpy
    from onnx import TypeProto

    from onnx_convert.report import Step
    from onnx_convert.scope import Scope

    Array = numpy.ndarray[Any, Any]

Key = tuple[int, int, object, bool, bytes]  # opset, inputs, which names are the same, has it a name, the rest
Question = tuple[str, str]  # what is asked, and the name of the value

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
_KEPT: Final = 8  # recipes whose nodes differ in the answers alone
_LARGE: Final = 1 << 16  # bytes; nodes of so many, with trees in their attributes, come one by one
_INPUT, _OUTPUT, _NAME = (
    varint(NodeProto.DESCRIPTOR.fields_by_name[field].number << 3 | BYTES) for field in ("input", "output", "name")
)


class Listener:
    """Takes down what is asked about the values of one node while it is rewritten.

    `own` are the values that are being written, about which a recipe need not ask, and `constants` those among them
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


class Subject(NamedTuple):
    """A node taken apart. Two nodes of the same key differ only in their names and in what is their own."""

    key: Key
    base: str  # how people find it
    names: list[str]  # of its inputs and outputs
    values: list[bytes]  # the same as values of fields
    own: bytes  # the fields that it shares with no other node: name, doc string, metadata


class _Recipe(NamedTuple):
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
    lost: tuple[int, ...]  # inputs that the new nodes do not use
    made: tuple[int, ...]  # outputs that somebody makes
    forgotten: tuple[int, ...]  # and those that nobody makes any more, as nobody reads them


class Followed(NamedTuple):
    """What a node became: new nodes, serialised, and the values that they make. `used` are the new constants that they
    use; None if the nodes are not plain, and have to be looked into. `lost` are inputs that they do not use."""

    nodes: list[bytes]
    values: list[str]
    steps: tuple[Step, ...]
    used: Collection[str] | None
    lost: list[str]


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


class Recipes:
    """What one conversion has learnt."""

    def __init__(self) -> None:
        self._by_key: dict[Key, list[_Recipe]] = {}

    def follow(self, subject: Subject, scope: Scope) -> Followed | None:
        """What the node becomes, if one like it was rewritten before and got the answers that this one would get."""
        recipes = self._by_key.get(subject.key, [])
        for index in range(len(recipes) - 1, -1, -1):
            recipe = recipes[index]
            for what, place, answer in recipe.answers:
                if scope.ask(what, subject.names[place]) != answer:
                    break
            else:
                recipes.append(recipes.pop(index))  # the next node is likely to be like this one
                return _write(recipe, subject, scope)
        return None

    def learn(
        self,
        subject: Subject,
        written: list[NodeProto],
        bearer: NodeProto | None,
        steps: list[Step],
        listener: Listener,
        *,
        plain: bool,
    ) -> None:
        """Remembers what became of a node, unless that depends on more than was taken down."""
        if not listener.general:
            return
        own = [*subject.names, ""]
        used = dict.fromkeys(name for new in written for name in (*new.input, *new.output) if name not in own)
        constants = listener.constants
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
            for (what, name), answer in listener.answers.items()
            if what != "spelled" or not _tells(listener.answers.get(("type", name)), answer)
        ]
        made = {name for new in written for name in new.output} - {""}
        recipes = self._by_key.setdefault(subject.key, [])
        del recipes[: 1 - _KEPT]
        recipes.append(
            _Recipe(
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


def _tells(kind: TypeProto | None, spelling: str) -> bool:
    """Whether the type of a value, which was asked for as well, says how it is spelled."""
    return kind is not None and spelled(kind) == spelling


def _rest(node: NodeProto, *, bears: bool) -> bytes:
    """What a new node is apart from its names, and, if it bears what is the subject's own, apart from that."""
    own = OWN if bears else ("name",)
    data: bytes = _without(node, "input", "output", *own).SerializeToString()
    return data


def _write(recipe: _Recipe, subject: Subject, scope: Scope) -> Followed:
    base = subject.base
    constants = [scope.share(array, base + ending) for array, ending in recipe.constants]
    fresh = scope.session.names.all_fresh([base + ending for ending in recipe.endings])
    pieces = [
        *recipe.literals,
        subject.own,
        *subject.values,
        b"\0",
        *map(text_value, constants),
        *map(text_value, fresh),
    ]
    nodes = [b"".join(choose(pieces)) for choose in recipe.choices]
    scope.edit.forgotten.update([subject.names[place] for place in recipe.forgotten])
    lost = [subject.names[place] for place in recipe.lost]
    values = fresh[: recipe.values] + [subject.names[place] for place in recipe.made]
    used = [constants[place] for place in recipe.used] if recipe.plain else None
    return Followed(nodes, values, recipe.steps, used, lost)
