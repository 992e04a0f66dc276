# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of kernels: which operators a runtime implements, at which opsets and for which types.

A table is a file of `kernel_tables/`, in lines. Those that begin with `=` name its releases, oldest first, with where
the facts come from:

    = 1.15 measured onnxruntime 1.15.1, the wheel

Each other line is about one version of one operator:

    Relu 14@14-18 1.15 T=-bfloat16,int16,int64

The operator, with its domain unless that is ai.onnx; the opset of this version of it (`*`: any); after the @ the opsets
that the line holds for, where it does not hold for all; the releases, from the first to the last, or to the newest
where the last is left out; and the types. These are `*` for all that the schema takes, `?` where only the operator is
known, or alternatives between bars: for each type variable (or input, or output) that does not take all, those that it
takes, or behind a minus those that it does not. The variable `*` is each of them. A line that begins with `&` gives
types a name, and `&NAME` stands for them.

A line that begins with `!` is about attributes with which an operator does not run, all of those named together;
without a value it is any, and `none` is an attribute that is not there; the opsets after the @ are those of the model:

    ! LSTM 1.10- layout=1
    ! NegativeLogLikelihoodLoss@19 1.15 ignore_index
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx_convert.spec import opsets, signatures

if TYPE_CHECKING:
    from onnx_convert.rewrite.kernels import Limit, Limits
    from onnx_convert.spec.signatures import Alternatives, Signature
    from onnx_convert.target.runtimes import Runtime

ALL: Final[Alternatives] = ({},)
ENDLESS: Final = 1_000_000


class _Line(NamedTuple):
    version: int  # 0: any
    first: int
    last: int
    types: str


class Table:
    """The kernels of one release of a runtime, `runtime` as users name it: release number `index` of the table
    `name`."""

    def __init__(self, runtime: str, name: str, index: int) -> None:
        self.runtime = runtime
        self.name = name
        self.index = index
        self.release, self.certainty, self.source = _read(name)[0][index]
        self._lines = lines = _of_release(name, index)
        self._limits = _limits_of(name, index)
        self._domains = {name.rpartition(".")[0] for name in lines}
        self._found: dict[tuple[str, str, int], Alternatives | None] = {}

    def of(self, domain: str, operator: str, opset: int) -> Alternatives | None:
        """Returns the types that an operator's kernels take at an opset; none of them: there is no kernel. None where
        nothing is known."""
        key = domain, operator, opset
        if key not in self._found:
            self._found[key] = self._find(domain, operator, opset)
        return self._found[key]

    def has(self, domain: str, operator: str, opset: int) -> bool:
        """Returns whether an operator has a kernel at an opset, for some types; true where nothing is known."""
        return (domain not in self._domains and not opsets.is_known(domain)) or bool(
            self._fitting(domain, operator, opset)
        )

    def limits(self, domain: str, operator: str, opset: int) -> Limits:
        """Returns the attributes, with their values or "" for any, with which nodes of an operator do not run."""
        lines = self._limits.get(f"{domain}.{operator}" if domain else operator, ())
        return tuple(limit for first, last, limit in lines if first <= opset <= last)

    def remedy(self, domain: str, operator: str, opset: int) -> str:
        """Returns what helps without a kernel: the first later release that has one, or not to ask for kernels."""
        name = f"{domain}.{operator}" if domain else operator
        later = _first_release(self.name, name, self.index)
        told = [f"{self.name} {later} has kernels for {operator}"] if later else []
        way = f"--to {opset}" if not domain else f"--to {domain}:{opset}"
        return "; or ".join([*told, f"{way} writes it without asking for kernels"])

    def _find(self, domain: str, operator: str, opset: int) -> Alternatives | None:
        if domain not in self._domains and not opsets.is_known(domain):
            return None
        lines = self._fitting(domain, operator, opset)
        signature = signatures.signature_of(operator, opset, domain)
        if signature is None:
            return ALL if lines else ()
        return tuple(one for line in lines for one in _alternatives(line.types, signature))

    def _fitting(self, domain: str, operator: str, opset: int) -> list[_Line]:
        """Returns the lines about an operator as it stands at an opset; all of a domain that onnx does not define."""
        lines = self._lines.get(f"{domain}.{operator}" if domain else operator, [])
        schema = opsets.schema_at(operator, opset, domain)
        if schema is None:
            return [] if opsets.is_known(domain) else lines
        return [
            line for line in lines if line.version in (0, schema.since_version) and line.first <= opset <= line.last
        ]


def of_runtime(runtime: Runtime) -> Table | None:
    """Returns the kernels of a runtime, None if no table has its version."""
    if runtime.kernels is None:
        return None
    name, version = runtime.kernels
    releases = [release for release, _, _ in _read(name)[0]]
    return Table(str(runtime), name, releases.index(version)) if version in releases else None


def of_provider(runtime: Runtime) -> Table | None:
    """Returns the kernels of the execution provider that a runtime names; of the newest release before its own that a
    table has. None if it names none, or is older than the table."""
    if runtime.provider is None:
        return None
    shown, name, version = runtime.provider
    releases = [release for release, _, _ in _read(name)[0]]
    older = [number for number, release in enumerate(releases) if _number(release) <= _number(version)]
    if not older:
        return None
    release = releases[older[-1]]
    by = "" if release == version else f" (by the list of {release})"
    return Table(f"{runtime} on {shown}{by}", name, older[-1])


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _first_release(name: str, operator: str, after: int) -> str:
    """Returns the first release behind one that has a kernel for an operator, "" if none has."""
    releases, lines = _read(name)
    place = {release: number for number, (release, _, _) in enumerate(releases)}
    later = [place[line.split(" ")[2].partition("-")[0]] for line in lines if line.startswith(f"{operator} ")]
    return releases[min(found)][0] if (found := [number for number in later if number > after]) else ""


@lru_cache(maxsize=None)
def _of_release(name: str, index: int) -> dict[str, list[_Line]]:
    """Returns the lines that hold for one release, by operator."""
    releases, lines = _read(name)
    place = {release: number for number, (release, _, _) in enumerate(releases)}
    found: dict[str, list[_Line]] = {}
    for line in lines:
        if line.startswith("!"):
            continue
        operator, version, span, types = line.split(" ")
        if not _holds(span, index, place):
            continue
        since, _, stamps = version.partition("@")
        found.setdefault(operator, []).append(_Line(0 if since == "*" else int(since), *_opsets(stamps), types))
    return found


@lru_cache(maxsize=None)
def _limits_of(name: str, index: int) -> dict[str, list[tuple[int, int, Limit]]]:
    """Returns the attributes with which operators do not run in one release, with the opsets from and to which."""
    releases, lines = _read(name)
    place = {release: number for number, (release, _, _) in enumerate(releases)}
    found: dict[str, list[tuple[int, int, Limit]]] = {}
    for line in lines:
        if line.startswith("!"):
            _, what, span, settings = line.split(" ")
            if _holds(span, index, place):
                operator, _, stamps = what.partition("@")
                parts = [setting.partition("=") for setting in settings.split("&")]
                limit = tuple((attribute, value) for attribute, _, value in parts)
                found.setdefault(operator, []).append((*_opsets(stamps), limit))
    return found


def _opsets(stamps: str) -> tuple[int, int]:
    """Returns the first and the last opset that are written behind an @; all if nothing is."""
    first, dash, last = stamps.partition("-")
    return (int(first), int(last) if dash else int(first)) if stamps else (0, ENDLESS)


def _holds(span: str, index: int, place: dict[str, int]) -> bool:
    """Returns whether a release is one of those from the first to the last."""
    first, dash, last = span.partition("-")
    return place[first] <= index <= (place[first] if not dash else place[last] if last else index)


@lru_cache(maxsize=None)
def _read(name: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Returns the releases of a table, each with certainty and source, and its other lines."""
    from importlib import resources

    text = resources.files("onnx_convert.target").joinpath("kernel_tables", f"{name}.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for given in [line for line in lines if line.startswith("& ")]:
        _, name, types = given.split(" ")
        lines = [line.replace(f"&{name}", types) for line in lines if line != given]
    releases = [line[2:].split(" ", 2) for line in lines if line.startswith("= ")]
    return [(release, certainty, source) for release, certainty, source in releases], [
        line for line in lines if not line.startswith("=")
    ]


def _alternatives(text: str, signature: Signature) -> Alternatives:
    """Returns the alternatives that a line tells, in the types of a schema."""
    if text in ("*", "?"):
        return ALL
    formals = (*signature.inputs, *signature.outputs)
    every = {formal.variable: formal.types for formal in formals} | {formal.name: formal.types for formal in formals}
    found = []
    for part in text.split("|"):
        one = {}
        for entry in part.split(";"):
            name, _, listed = entry.partition("=")
            kinds = frozenset(_spelled(kind) for kind in re.findall(r"(?:[^,(]|\([^)]*\)+)+", listed.removeprefix("-")))
            for variable in every if name == "*" else (name,):
                one[variable] = every.get(variable, frozenset()) - kinds if listed.startswith("-") else kinds
        found.append(one)
    return tuple(found)


def _spelled(kind: str) -> str:
    """Returns a type as schemas spell it: "tensor(float)" for `float`, "seq(tensor(float))" for `seq(float)`."""
    outer, bracket, inner = kind.partition("(")
    if not bracket:
        return f"tensor({kind})"
    if outer == "map":
        key, _, value = inner[:-1].partition(",")
        return f"map({key},{_spelled(value)})"
    return f"{outer}({_spelled(inner[:-1])})"
