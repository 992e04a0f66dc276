# SPDX-License-Identifier: Apache-2.0
"""Tells what is known of an operator, without a model: its boundaries, what changed there, and what is done about it.

Nothing is written for this purpose. What changed is the difference of two schemas, and the line of a family's docstring
that begins with the opset; what is done is the table of decisions; what a rewrite promises, asks for and may refuse is
read from its source (see `sources`).
"""

from __future__ import annotations

import difflib
import re
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import onnx.defs

import onnx_convert.adapters  # noqa: F401  (fills the registry when asked)
from onnx_convert.errors import UsageError
from onnx_convert.reference.adapter_source import Form, read
from onnx_convert.rewrite import plugins, registry
from onnx_convert.rewrite.registry import Adapter, Compatible, Impossible
from onnx_convert.spec import opsets
from onnx_convert.spec.opsets import DOWN, UP
from onnx_convert.spec.schema_diff import differences, lost_types

if TYPE_CHECKING:
    from collections.abc import Iterator

ADAPTED: Final = "adapted"
COMPATIBLE: Final = "compatible"
REFUSED: Final = "refused"
UNDECIDED: Final = "undecided"
DECISIONS: Final = (ADAPTED, COMPATIBLE, REFUSED, UNDECIDED)

_HEAD: Final = re.compile(r"(?:^|\s{3,})((?:\d+(?: \([^)]*\))?(?:, )?)+): ")  # `10 (MaxPool), 18 (LpPool): `
_ITEM: Final = re.compile(r"(\d+)(?: \(([^)]*)\))?")


@dataclass(frozen=True, slots=True)
class Way:
    """The fate of a node that crosses a boundary in one direction.

    `text` is what the rewrite does, why the node may stay, or why there is no way. `forms` is empty where it is not
    known, or where there is nothing to promise. `needs` and `refusals` concern some nodes only.
    """

    decision: str
    rewrite: str = ""
    text: str = ""
    remedy: str = ""
    forms: tuple[Form, ...] = ()
    needs: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    narrows: bool = False  # the side of arrival takes fewer dtypes


@dataclass(frozen=True, slots=True)
class Boundary:
    """An opset that changed an operator, or brought it: then there is nothing to go up from, and `up` is None."""

    opset: int
    told: tuple[str, ...]  # by the families that carry the operator
    changes: tuple[str, ...]  # by the schemas
    up: Way | None
    down: Way


@dataclass(frozen=True, slots=True)
class Explanation:
    """An operator and its boundaries, oldest first. `since` is the opset that brought it, 0 if onnx does not know."""

    operator: str
    domain: str
    since: int
    boundaries: tuple[Boundary, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation as plain data, fit for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Covered:
    """The decisions of one operator: per boundary, oldest first, that of the way up (None: nothing below) and down."""

    operator: str
    domain: str
    crossings: tuple[tuple[int, str | None, str], ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The decisions for every operator of the installed onnx that has a boundary."""

    newest: dict[str, int]  # by domain: the newest opset that is known
    operators: tuple[Covered, ...]
    unchanged: int  # operators that have been there from opset 1 on and never changed

    def count(self, direction: str) -> Counter[str]:
        """Returns how many crossings in one direction have each decision."""
        index = 1 if direction == UP else 2
        ways = (crossing[index] for covered in self.operators for crossing in covered.crossings)
        return Counter(str(way) for way in ways if way is not None)

    def to_dict(self) -> dict[str, Any]:
        """Returns the coverage as plain data, fit for JSON."""
        totals = {direction: dict(self.count(direction)) for direction in (UP, DOWN)}
        return {**asdict(self), "totals": totals}


def explain(name: str) -> Explanation:
    """Explains `Softmax`, `ai.onnx.ml.LabelEncoder`, or one boundary: `Softmax@13`.

    Raises UsageError for what is not known, with close matches.
    """
    domain, operator, opset = _find(name)
    versions = opsets.history(operator, domain)
    since = versions[0] if versions else 0
    known = [opset for opset, _ in registry.crossings(domain, operator, 1, sys.maxsize)]
    if opset and opset not in known:
        has = f"its boundaries are {', '.join(map(str, known))}" if known else "it has none"
        raise UsageError(f"{operator} has no boundary {opset}: {has}")
    boundaries = tuple(_boundary(operator, one, domain, since) for one in known if opset in (0, one))
    return Explanation(operator, opsets.shown(domain), since, boundaries)


def coverage() -> Coverage:
    """Returns the decisions for all operators of the installed onnx, by domain and name."""
    every = sorted({(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()})
    covered = []
    for domain, operator in every:
        versions = opsets.history(operator, domain)
        crossings = tuple(
            (
                opset,
                decided(registry.decision(operator, opset, UP, domain)) if opset > versions[0] else None,
                decided(registry.decision(operator, opset, DOWN, domain)),
            )
            for opset in versions
            if opset > 1
        )
        if crossings:
            covered.append(Covered(operator, opsets.shown(domain), crossings))
    newest = {opsets.shown(domain): opsets.latest(domain) for domain in sorted({domain for domain, _ in every})}
    return Coverage(newest, tuple(covered), len(every) - len(covered))


def decided(decision: registry.Decision | None) -> str:
    """Returns the decision in one word."""
    kinds = {Adapter: ADAPTED, Compatible: COMPATIBLE, Impossible: REFUSED}
    return kinds[type(decision)] if decision is not None else UNDECIDED


# ---- which operator is meant


def _find(name: str) -> tuple[str, str, int]:
    """Returns domain, operator and boundary (0: all of them) of a name. Without a domain, every domain of onnx is
    looked in."""
    path, _, number = name.partition("@")
    if number and not number.isdecimal():
        raise UsageError(f"{number!r} is not an opset: ask for an operator, or for a boundary as in Softmax@13")
    prefix, _, operator = path.rpartition(".")
    domain = opsets.canonical_domain(prefix)
    if domain and not opsets.is_known(domain):
        plugins.load()
    known = _operators()
    places = [place for place, one in known if one == operator and (place == domain or not prefix)]
    if not places and path.endswith(".onnx"):
        raise UsageError(f"no operator {path!r} is known: a model is described by onnx-convert {path}")
    if not places:
        by_name = {one.lower(): opsets.shown(place) + "." + one if place else one for place, one in sorted(known)}
        close = difflib.get_close_matches(operator.lower(), by_name, n=4)
        hint = f"; did you mean {', '.join(by_name[one] for one in close)}?" if close else ": --coverage lists all"
        raise UsageError(f"no operator {path!r} is known{hint}")
    return min(places), operator, int(number or 0)


def _operators() -> set[tuple[str, str]]:
    """Returns domain and name of every operator of the installed onnx, and of those that somebody registered adapters
    for."""
    own = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    return own | {key[:2] for key, _ in registry.decisions() if not opsets.is_known(key[0])}


# ---- one boundary


def _boundary(operator: str, opset: int, domain: str, since: int) -> Boundary:
    down = _way(operator, opset, DOWN, domain)
    if opset == since:
        return Boundary(opset, (), ("the operator is new",), None, down)
    old, new = (opsets.schema_at(operator, one, domain) for one in (opset - 1, opset))
    changes = tuple(differences(old, new)) if old and new else ()
    return Boundary(opset, tuple(_told(operator, opset, domain)), changes, _way(operator, opset, UP, domain), down)


def _way(operator: str, opset: int, direction: str, domain: str) -> Way:
    decision = registry.decision(operator, opset, direction, domain)
    old, new = (opsets.schema_at(operator, one, domain) for one in (opset - 1, opset))
    departure, arrival = (old, new) if direction == UP else (new, old)
    narrows = bool(departure and arrival and lost_types(departure, arrival))
    if isinstance(decision, Adapter):
        found = read(decision.function, departure)
        text = " ".join((decision.function.__doc__ or "").strip().partition("\n\n")[0].split())
        return Way(ADAPTED, decision.name, text, "", found.forms, found.needs, found.refusals, narrows)
    if isinstance(decision, Impossible):
        return Way(REFUSED, text=decision.reason, remedy=decision.remedy)
    if isinstance(decision, Compatible):
        return Way(COMPATIBLE, text=decision.because, narrows=narrows)
    return Way(UNDECIDED)


# ---- what the families tell


def _told(operator: str, opset: int, domain: str) -> Iterator[str]:
    """Yields what the modules of an operator's adapters say of a boundary in their docstrings, as far as it concerns
    it."""
    modules = {
        decision.function.__module__: None
        for key, decision in registry.decisions()
        if key[:2] == (domain, operator) and isinstance(decision, Adapter)
    }
    for module in modules:
        for items, text in _lines(sys.modules[module].__doc__ or ""):
            named = {name for _, names in items for name in names}
            about = [names for number, names in items if number == opset]
            others = operator not in named and {"the others"} in about
            if (others or any(not names or operator in names for names in about)) and (
                told := _concerning(text, operator)
            ):
                yield told


def _lines(doc: str) -> Iterator[tuple[list[tuple[int, set[str]]], str]]:
    """Yields the paragraphs of a docstring that begin with opsets: those, each with the operators it is restricted to,
    and the text."""
    paragraphs: list[str] = []
    for line in doc.splitlines():
        for part in re.split(r"\s{3,}(?=\d+: )", line):
            if _HEAD.match(part):
                paragraphs.append(part)
            elif paragraphs:
                paragraphs[-1] += "\n" + part
    for paragraph in paragraphs:
        head = _HEAD.match(paragraph)
        assert head is not None
        items = [(int(number), set(filter(None, names.split(", ")))) for number, names in _ITEM.findall(head[1])]
        yield items, paragraph[head.end() :].partition("\n\n")[0]


def _concerning(text: str, operator: str) -> str:
    """Returns the clauses of a text that name an operator, or none. A clause that names none goes with the one before
    it."""
    kept = []
    for sentence in re.split(r"(?<=[^.]\.) (?=\W*[A-Z])", " ".join(text.replace("\n- ", " ").split())):
        named: set[str] = set()
        clauses = []
        for clause in sentence.split("; "):
            named = set(re.findall(r"\w+", clause)) & _names() or named
            if not named or operator in named:
                clauses.append(clause)
        if clauses:
            kept.append("; ".join(clauses).rstrip(".;"))
    return ". ".join(kept).strip()


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(name for _, name in _operators())
