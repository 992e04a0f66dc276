# SPDX-License-Identifier: Apache-2.0
"""The one table of what happens at every boundary: who carries which operator over it, in which direction.

An entry is one of three decisions: an *adapter* (a function that writes the node anew), *compatible* (the node may stay
as it is; the legality of its dtypes is judged once, at the target), or *refused* (the specification leaves no way).
What has no entry is undecided, and a node that would have to cross it is refused. Two decisions for the same crossing
are an error when the second one is made: at the latest when somebody asks about the operator.

The table fills as it is asked: before the first question about an operator is answered, what was handed to `filled_by`
adds what it knows of that operator; so a conversion imports the few families that it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from onnx_convert.spec import opsets
from onnx_convert.spec.opsets import AI_ONNX, DOWN, UP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from onnx_convert.rewrite.emitter import Emitter, Outcome
    from onnx_convert.rewrite.node import Node

    AdapterFunction = Callable[[Node, Emitter], Outcome]

Function = TypeVar("Function", bound=Callable[..., object])
Direction = Literal["up", "down"]
Key = tuple[str, str, int, str]  # domain, operator, boundary, direction


class Adapter(NamedTuple):
    """A function that rewrites the nodes of one operator at one boundary."""

    domain: str
    operator: str
    boundary: int
    direction: str
    function: AdapterFunction

    @property
    def name(self) -> str:
        """The name of the rewrite, as reports print it: `normalise_one_axis`."""
        return self.function.__name__

    @property
    def summary(self) -> str:
        """The first line of what the function says of itself."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


class Compatible(NamedTuple):
    """The node may cross as it is. `because` is there where attributes, inputs or outputs differ all the same."""

    because: str = ""


class Impossible(NamedTuple):
    """The specification leaves no way across; the reason goes to the user."""

    reason: str
    remedy: str = ""


Decision = Adapter | Compatible | Impossible

EVERY: Final = ""  # what a filler is asked for besides operators: the whole table,
COMMON: Final = "*"  # and what concerns all operators

_decisions: Final[dict[Key, Decision]] = {}
_kinds: Final[dict[tuple[str, str], str]] = {}
_fillers: Final[list[Callable[[str], None]]] = []
_asked: Final[set[str]] = set()
_guests: Final[set[str]] = set()  # operators of which somebody else has decided something,
_modules: Final[dict[Key, str]] = {}  # and where: by crossing, the module, but for what is installed as a plug-in
_of_plugins: Final = ContextVar("of_plugins", default=False)
_filling: Final = ContextVar("filling", default=False)


def filled_by(fill: Callable[[str], None]) -> None:
    """Calls `fill` with COMMON at once, later with each operator that is asked for, with EVERY for the whole table."""
    _fillers.append(fill)
    _call(fill, COMMON)


def _fill(operator: str) -> None:
    if operator not in _asked and EVERY not in _asked:
        for fill in _fillers:
            _call(fill, operator)
        _asked.add(operator)


def _call(fill: Callable[[str], None], what: str) -> None:
    token = _filling.set(True)
    try:
        fill(what)
    finally:
        _filling.reset(token)


def _decide(key: Key, decision: Decision) -> None:
    if key in _decisions:
        domain, operator, boundary, direction = key
        raise ValueError(f"{opsets.shown(domain)}.{operator}@{boundary} {direction} is decided twice")
    if not _filling.get():
        _guests.add(key[1])
        module = decision.function.__module__ if isinstance(decision, Adapter) else _caller()
        if not _of_plugins.get() and module.partition(".")[0] != __name__.partition(".")[0]:
            _modules[key] = module
    _decisions[key] = decision
    first_crossing.cache_clear()


def _adapter(operators: tuple[str, ...], at: int, domain: str, direction: Direction) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        for operator in operators:
            adapter = Adapter(opsets.canonical_domain(domain), operator, at, direction, function)  # type: ignore[arg-type]
            _decide((adapter.domain, operator, at, direction), adapter)
        return function

    return register


def upgrade(*operators: str, at: int, domain: str = AI_ONNX) -> Callable[[Function], Function]:
    """Registers the decorated function: it carries a node of these operators from opset `at - 1` to opset `at`."""
    return _adapter(operators, at, domain, UP)


def downgrade(*operators: str, at: int, domain: str = AI_ONNX) -> Callable[[Function], Function]:
    """Registers the decorated function: it carries a node of these operators from opset `at` to opset `at - 1`."""
    return _adapter(operators, at, domain, DOWN)


def compatible(
    *operators: str, at: int, direction: Direction | None = None, because: str = "", domain: str = AI_ONNX
) -> None:
    """Declares that nodes of these operators cross boundary `at` as they are; in both directions if none is named.

    Only dtypes and wording may differ between the two versions, and a test sees to it; where more differs, `because`
    says why the node may stay all the same.
    """
    for operator in operators:
        for way in (UP, DOWN) if direction is None else (direction,):
            _decide((opsets.canonical_domain(domain), operator, at, way), Compatible(because))


def impossible(
    *operators: str, at: int, direction: Direction, reason: str, remedy: str = "", domain: str = AI_ONNX
) -> None:
    """Declares that the specification leaves no way for these operators over boundary `at`, and why."""
    for operator in operators:
        _decide((opsets.canonical_domain(domain), operator, at, direction), Impossible(reason, remedy))


def promotable(kind: str, *operators: str, domain: str = AI_ONNX) -> None:
    """Declares what an operator does to values, hence in which wider dtype it can be given them (see `promotion`)."""
    for operator in operators:
        if _kinds.setdefault((domain, operator), kind) != kind:
            raise ValueError(f"{operator} is promotable as {_kinds[domain, operator]} already")


def kind_of(operator: str, domain: str = AI_ONNX) -> str:
    """Returns the declared kind of an operator; "" where none is declared."""
    _fill(operator)
    return _kinds.get((domain, operator), "")


def decision(operator: str, boundary: int, direction: str, domain: str = AI_ONNX) -> Decision | None:
    """Returns what is decided for one crossing; None if nothing is."""
    key = (domain, operator, boundary, direction)
    if key not in _decisions or operator in _guests:  # is it decided twice?
        _fill(operator)
    return _decisions.get(key)


def guests() -> dict[Key, str]:
    """Returns the crossings that were decided in this process by somebody else, plug-ins apart, each with the module
    that did it."""
    return dict(_modules)


@contextmanager
def of_plugins() -> Iterator[None]:
    """Takes what is decided meanwhile as that of an installed plug-in, which every process has."""
    token = _of_plugins.set(True)
    try:
        yield
    finally:
        _of_plugins.reset(token)


def _caller() -> str:
    """Returns the name of the module that calls this one."""
    frame = sys._getframe(1)  # noqa: SLF001 - what `inspect.stack` is made of, and slow
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__"))


def decisions() -> Iterable[tuple[Key, Decision]]:
    """Returns every entry of the table."""
    _fill(EVERY)
    return _decisions.items()


class Crossing(NamedTuple):
    """One step on the way of a node: the boundary, and what is decided there (None: nothing)."""

    boundary: int
    direction: str
    decision: Adapter | Impossible | None


@lru_cache(maxsize=None)
def first_crossing(domain: str, operator: str, start: int, stop: int) -> Crossing | None:
    """Returns the first boundary between two opsets at which a node of this operator cannot stay as it is.

    None, and thus one dictionary look-up a node, is the common answer: every boundary on the way is compatible.
    """
    for boundary, direction in crossings(domain, operator, start, stop):
        what = decision(operator, boundary, direction, domain)
        if not isinstance(what, Compatible):
            return Crossing(boundary, direction, what)
    return None


def crossings(domain: str, operator: str, start: int, stop: int) -> list[tuple[int, str]]:
    """Returns the boundaries of an operator on the way: of the schemas; of this table for a domain without schemas."""
    if opsets.history(operator, domain):
        return opsets.crossings(operator, start, stop, domain)
    _fill(operator)
    direction = UP if start <= stop else DOWN
    low, high = sorted((start, stop))
    own = {key[2] for key in _decisions if key[:2] == (domain, operator) and low < key[2] <= high}
    return [(boundary, direction) for boundary in sorted(own, reverse=direction == DOWN)]


def is_experimental(operator: str, domain: str = AI_ONNX) -> bool:
    """Returns whether nodes of an operator may stand where no schema describes it: one of the experimental ones of
    opset 1, known by what is decided for the way up to where its successor is introduced."""
    versions = opsets.history(operator, domain)
    if versions:
        return decision(operator, versions[0], UP, domain) is not None
    return has_operator(operator, domain)


def has_operator(operator: str, domain: str) -> bool:
    """Returns whether any entry concerns this operator."""
    _fill(operator)
    return any(key[:2] == (domain, operator) for key in _decisions)


def has_domain(domain: str) -> bool:
    """Returns whether any entry concerns this domain."""
    return any(key[0] == domain for key in _decisions)


def boundaries_of(domain: str) -> set[int]:
    """Returns the boundaries of a domain for which there is any entry."""
    return {key[2] for key in _decisions if key[0] == domain}
