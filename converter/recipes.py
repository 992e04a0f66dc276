# SPDX-License-Identifier: Apache-2.0
"""Remembers how a node was rewritten, for the next one like it.

A model has few kinds of nodes and many of each. What a node becomes follows from its attributes, from which inputs and
outputs it has, and from the answers that adapters and the legality check got about its values. So the questions of one
rewrite are taken down with their answers; a node that would get the same answers becomes the same nodes under its own
names, and nobody is asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onnx import AttributeProto, NodeProto

from onnx_convert import opsets

if TYPE_CHECKING:
    import numpy

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


@dataclass(frozen=True, slots=True)
class _Template:
    """A node to write. A name is the place of one among the source node's inputs and outputs, or the end of a new one,
    or that of a constant."""

    proto: NodeProto
    inputs: tuple[int | str, ...]
    outputs: tuple[int | str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class _Recipe:
    answers: tuple[tuple[str, int, Any], ...]
    templates: tuple[_Template, ...]
    bearer: int  # the node that keeps the name, the doc string and the metadata of the source node
    constants: tuple[tuple[str, numpy.ndarray[Any, Any]], ...]
    steps: tuple[Step, ...]


def key_of(node: NodeProto, opset: int) -> Key | None:
    """What two nodes must have in common; None for a node that is one of its kind, with a subgraph or a tensor."""
    attributes = []
    for attribute in node.attribute:
        if attribute.type not in _PLAIN or attribute.ref_attr_name:
            return None
        attributes.append(attribute.SerializeToString())
    names = [*node.input, *node.output]
    pattern = tuple(names.index(name) if name else -1 for name in names)
    return node.op_type, node.domain, opset, len(node.input), pattern, bool(node.name), *attributes


class Recipes:
    """What one conversion has learnt."""

    def __init__(self) -> None:
        self._by_key: dict[Key, list[_Recipe]] = {}

    def follow(self, key: Key, node: NodeProto, scope: Scope) -> tuple[list[NodeProto], tuple[Step, ...]] | None:
        """What the node becomes, if one like it was rewritten before and got the answers that this one would get."""
        recipes = self._by_key.get(key)
        if not recipes:
            return None
        names = [*node.input, *node.output]
        for recipe in recipes:
            if all(scope.ask(what, names[place]) == answer for what, place, answer in recipe.answers):
                return _write(recipe, node, names, scope), recipe.steps
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
    ) -> None:
        """Remembers what became of a node, unless that depends on more than was taken down."""
        recipes = self._by_key.setdefault(key, [])
        if not listener.general or len(recipes) >= _KEPT:
            return
        base = scope.shown(node)
        places = {name: place for place, name in reversed([*enumerate((*node.input, *node.output))]) if name}
        used = {name for new in written for name in (*new.input, *new.output)} - places.keys() - {""}
        constants = {name: array for name in used if (array := scope.new_constant(name)) is not None}
        if not all(name in constants or name.startswith(base) for name in used):
            return

        def place_of(name: str) -> int | str:
            if name in places:
                place: int = places[name]
                return place
            ending: str = name if name in constants else name[len(base) :]
            return ending

        templates = [
            _Template(
                NodeProto(op_type=new.op_type, domain=new.domain or None, attribute=new.attribute),
                tuple(place_of(name) for name in new.input),
                tuple(place_of(name) for name in new.output),
                new.name[len(base) :],
            )
            for new in written
        ]
        place = next((index for index, new in enumerate(written) if new is bearer), -1)
        answers = tuple((what, places[name], answer) for (what, name), answer in listener.answers.items())
        recipes.append(_Recipe(answers, tuple(templates), place, tuple(constants.items()), tuple(steps)))


def _write(recipe: _Recipe, node: NodeProto, names: list[str], scope: Scope) -> list[NodeProto]:
    base = scope.shown(node)
    fresh = scope.session.names.fresh
    made = {name: scope.share(array, f"{base}/constant") for name, array in recipe.constants}
    made[""] = ""

    def name_of(place: int | str) -> str:
        if isinstance(place, int):
            return names[place]
        name = made.get(place)
        if name is None:
            name = made[place] = fresh(base + place)
        return name

    written = []
    for index, template in enumerate(recipe.templates):
        new = NodeProto()
        if index == recipe.bearer:
            new.CopyFrom(node)
            del new.input[:], new.output[:], new.attribute[:]
            new.op_type = template.proto.op_type
            if opsets.normalise(new.domain) != opsets.normalise(template.proto.domain):
                new.domain = template.proto.domain
            new.attribute.extend(template.proto.attribute)
        else:
            new.CopyFrom(template.proto)
            if template.name:
                new.name = fresh(base + template.name)
        new.input.extend([name_of(place) for place in template.inputs])
        new.output.extend([name_of(place) for place in template.outputs])
        written.append(new)
    return written
