# SPDX-License-Identifier: Apache-2.0
"""Remembers how a node was rewritten, for the next one like it.

A model has few kinds of nodes and many of each. What a node becomes follows from its attributes, from which inputs and
outputs it has, and from the answers that adapters and the legality check got about its values. So the questions of one
rewrite are taken down with their answers; a node that would get the same answers becomes the same nodes under its own
names, and nobody is asked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnx import AttributeProto, NodeProto

from onnx_convert import opsets
from onnx_convert.facts import name_of
from onnx_convert.types import spelled

if TYPE_CHECKING:
    import numpy
    from onnx import TypeProto

    from onnx_convert.report import Step
    from onnx_convert.scope import Scope

Key = tuple[object, ...]
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


class Listener:
    """Takes down what is asked about the values of one node while it is rewritten.

    `own` are the values that are being written, about which a recipe need not ask. `general` says that no other value
    of the graph was asked about, so that the answers tell everything.
    """

    def __init__(self, node: NodeProto) -> None:
        self.names = frozenset((*node.input, *node.output))
        self.own: set[str] = set()
        self.answers: dict[Question, Any] = {}
        self.general = True

    def heard(self, what: str, name: str, answer: Any) -> None:
        """An answer; the first one counts, given before anything was written."""
        if name in self.names:
            self.answers.setdefault((what, name), answer)
        elif name not in self.own:
            self.general = False


class _Template(NamedTuple):
    """A node to write: operator and attributes as a message, the rest as places in the list of all names there are."""

    message: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str  # the ending of its own


class _Recipe(NamedTuple):
    """The names of a node that follows it are, in this order: its inputs and outputs, "", the names of the constants,
    and new ones with these endings."""

    answers: tuple[tuple[str, int, Any], ...]
    constants: tuple[numpy.ndarray[Any, Any], ...]
    endings: tuple[str, ...]
    templates: tuple[_Template, ...]
    bearer: int  # the node that keeps the name, the doc string and the metadata of the source node
    own_domain: bool  # which is of the same domain
    steps: tuple[Step, ...]
    used: tuple[int, ...] | None


class Followed(NamedTuple):
    """What a node became. `used` are the values that the new nodes use and do not make themselves; None if the nodes
    are not plain, and have to be looked into."""

    nodes: list[NodeProto]
    steps: tuple[Step, ...]
    used: set[str] | None


def names_of(node: NodeProto) -> list[str]:
    """Its inputs and outputs."""
    return [*node.input, *node.output]


def key_of(node: NodeProto, names: list[str], opset: int) -> Key | None:
    """What two nodes must have in common; None for a node that is one of its kind, with a subgraph or a tensor."""
    attributes = []
    for attribute in node.attribute:
        if attribute.type not in _PLAIN or attribute.ref_attr_name:
            return None
        attributes.append(attribute.SerializeToString())
    usual = len(set(names)) == len(names) and "" not in names
    pattern = len(names) if usual else tuple(names.index(name) if name else -1 for name in names)
    return node.op_type, node.domain, opset, len(node.input), pattern, bool(node.name), *attributes


class Recipes:
    """What one conversion has learnt."""

    def __init__(self) -> None:
        self._by_key: dict[Key, list[_Recipe]] = {}

    def follow(self, key: Key, node: NodeProto, names: list[str], scope: Scope) -> Followed | None:
        """What the node becomes, if one like it was rewritten before and got the answers that this one would get."""
        for recipe in self._by_key.get(key, ()):
            for what, place, answer in recipe.answers:
                if scope.ask(what, names[place]) != answer:
                    break
            else:
                return _write(recipe, node, names, scope)
        return None

    def learn(
        self,
        key: Key,
        node: NodeProto,
        written: list[NodeProto],
        bearer: NodeProto | None,
        steps: list[Step],
        listener: Listener,
        scope: Scope,
        *,
        plain: bool,
    ) -> None:
        """Remembers what became of a node, unless that depends on more than was taken down."""
        recipes = self._by_key.setdefault(key, [])
        if not listener.general or len(recipes) >= _KEPT:
            return
        base = name_of(node)
        own = [*names_of(node), ""]
        used = dict.fromkeys(name for new in written for name in (*new.input, *new.output) if name not in own)
        constants = {name: array for name in used if (array := scope.new_constant(name)) is not None}
        fresh = [name for name in used if name not in constants]
        if not all(name.startswith(base) for name in fresh):
            return
        every = [*own, *constants, *fresh]
        templates = [
            _Template(
                NodeProto(op_type=new.op_type, domain=new.domain or None, attribute=new.attribute).SerializeToString(),
                tuple(every.index(name) for name in new.input),
                tuple(every.index(name) for name in new.output),
                new.name[len(base) :],
            )
            for new in written
        ]
        made = {place for template in templates for place in template.outputs}
        taken = {place for template in templates for place in template.inputs}
        answers = [
            (what, own.index(name), answer)
            for (what, name), answer in listener.answers.items()
            if what != "spelled" or not _tells(listener.answers.get(("type", name)), answer)
        ]
        recipes.append(
            _Recipe(
                tuple(answers),
                tuple(constants.values()),
                tuple(name[len(base) :] for name in fresh),
                tuple(templates),
                next((index for index, new in enumerate(written) if new is bearer), -1),
                bearer is not None and opsets.normalise(bearer.domain) == opsets.normalise(node.domain),
                tuple(steps),
                tuple(taken - made) if plain else None,
            )
        )


def _tells(kind: TypeProto | None, spelling: str) -> bool:
    """Whether the type of a value, which was asked for as well, says how it is spelled."""
    return kind is not None and spelled(kind) == spelling


def _write(recipe: _Recipe, node: NodeProto, names: list[str], scope: Scope) -> Followed:
    base = name_of(node)
    fresh = scope.session.names.fresh
    every = [*names, ""]
    for array in recipe.constants:
        every.append(scope.share(array, f"{base}/constant"))
    for ending in recipe.endings:
        every.append(fresh(base + ending))
    written = []
    for index, template in enumerate(recipe.templates):
        if index == recipe.bearer:
            new = NodeProto()
            new.CopyFrom(node)
            new.ClearField("input")
            new.ClearField("output")
            new.ClearField("attribute")
            if not recipe.own_domain:
                new.ClearField("domain")
            new.MergeFromString(template.message)
        else:
            new = NodeProto.FromString(template.message)
            if template.name:
                new.name = fresh(base + template.name)
        for place in template.inputs:  # one by one: names are few, and a list of them costs more
            new.input.append(every[place])
        for place in template.outputs:
            new.output.append(every[place])
        written.append(new)
    used = {every[place] for place in recipe.used} if recipe.used is not None else None
    return Followed(written, recipe.steps, used)
