# SPDX-License-Identifier: Apache-2.0
"""Tells which runtime loads what: reads `runtimes.toml`, finds the row for `onnxruntime@1.14`, says what of a model is
too new for it.

Imports nothing that takes time: the table can be listed without onnx.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

UNCERTAIN: Final = ("reported", "inferred")
_HERE: Final = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino")  # distributions
_STAMPS: Final = {"ai.onnx": "opset", "ai.onnx.ml": "ai.onnx.ml opset", "": "IR version"}


@dataclass(frozen=True, slots=True)
class Missing:
    """Operators of a domain (none named: all) that have no kernel in models at its opset `at` or above."""

    domain: str
    operators: tuple[str, ...]
    at: int

    @property
    def remedy(self) -> str:
        """The text to type; "" where no opset helps."""
        if self.at == 1:
            return ""
        return f"--to {self.at - 1}" if self.domain == "ai.onnx" else f"--to {self.domain}:{self.at - 1}"

    def holds(self, domain: str, operator: str, opset: int) -> bool:
        """Returns whether it is about this operator at this opset of its domain."""
        return domain == self.domain and operator in (self.operators or (operator,)) and opset >= self.at


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime or tool at one version. `opset`, `ir`, `ml` are the highest that it loads, None where it never looks;
    `minimum` is the lowest opset. `follows`: nobody states its IR version, it is that of its opset's ONNX release.

    `kernels` are the table of its kernels and the release there; `provider` are the name of the execution provider that
    runs what it can, its table and the release, where the CPU runs the rest.

    `certainty` is measured, documented, reported or inferred. `notes` say how the row was chosen, `guess` which version
    was taken where none was named, `also` are other names. `domains` are those that it has besides the ones of ONNX,
    each with the highest version that it loads (0: it never looks).
    """

    name: str
    version: str
    title: str
    opset: int | None
    ir: int | None
    ml: int | None
    minimum: int
    follows: bool
    certainty: str
    source: str
    remark: str
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    domains: tuple[tuple[str, int], ...] = ()
    guess: str = ""
    kernels: tuple[str, str] | None = None
    provider: tuple[str, str, str] | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.version}".rstrip()

    def loads(self, imports: Mapping[str, int], ir_version: int) -> bool:
        """Returns whether a model with these opsets by domain (`ai.onnx` by that name) and this IR version is within
        bounds."""
        old = imports.get("ai.onnx", self.minimum) < self.minimum
        return not (old or self._too_new(imports, ir_version) or self.excess(imports))

    def lacks(self, domains: Iterable[str]) -> list[str]:
        """Returns the domains among these that it does not have, those of ONNX apart."""
        own = {*_STAMPS, *(domain for domain, _ in self.domains)}
        return [domain for domain in domains if domain not in own and not domain.startswith("ai.onnx.")]

    def excess(self, imports: Mapping[str, int]) -> dict[str, int]:
        """Returns the domains that it has and of which it loads no version as high as the model's, with the highest."""
        return {domain: most for domain, most in self.domains if most and imports.get(domain, 0) > most}

    def opsets_for(self, imports: Mapping[str, int]) -> dict[str, int]:
        """Returns the opsets that a model's domains have to go to, the nearest ones that load; all that it has, if they
        do."""
        wanted = {}
        for domain, highest in (("ai.onnx", self.opset), ("ai.onnx.ml", self.ml)):
            if domain in imports:
                wanted[domain] = imports[domain] if highest is None else min(imports[domain], highest)
        if "ai.onnx" in wanted:
            wanted["ai.onnx"] = max(wanted["ai.onnx"], self.minimum)
        return wanted

    def verdict(self, imports: Mapping[str, int], ir_version: int) -> str:
        """Returns one sentence: what the runtime loads, and what of the model was too new for it or too old."""
        new = self._too_new(imports, ir_version)
        opset = imports.get("ai.onnx", self.minimum)
        told = []
        if new:
            first = ", ".join(f"the {_STAMPS[key]} ({value})" for key, value in new.items())
            told.append(f"{' and '.join(first.rsplit(', ', 1))} {'were' if len(new) > 1 else 'was'} too new")
        if opset < self.minimum:
            told.append(f"the opset ({opset}) was too old, it begins with {self.minimum}")
        elif new and "ai.onnx" not in new:
            told.append(f"the opset ({opset}) was not")
        elif new and "" not in new:
            told.append(f"the IR version ({ir_version}) was not")
        return f"{self._limits(new)}: {', '.join(told) or 'nothing was too new'}"

    def _limits(self, new: Mapping[str, int]) -> str:
        """Returns what the runtime loads, the ai.onnx.ml opset only where that was too new."""
        if self.opset is None:
            stamps = "how new opset and IR version are" if self.minimum > 1 else "opset and IR version"
            return f"{self} does not look at {stamps}"
        ml = f", ai.onnx.ml {self.ml}" if "ai.onnx.ml" in new else ""
        if self.ir is None:
            return f"{self} loads opset {self.opset}{ml} at most and any IR version"
        return f"{self} loads opset {self.opset}{ml} and IR version {self.ir} at most"

    @property
    def doubt(self) -> str:
        """The reason why the row may be wrong; "" if it was measured or is documented."""
        if self.certainty not in UNCERTAIN:
            return ""
        return f"what is known of {self} is {self.certainty}, not documented: {self.source}"

    @property
    def remarks(self) -> list[str]:
        """The remarks on how the row was chosen, where its IR version comes from, and what else a user of it should
        know."""
        told = [*self.notes]
        if self.follows and self.opset is not None:
            told.append(f"the IR version that {self} loads is not documented; {self.ir} goes with opset {self.opset}")
        return told + ([f"{self}: {self.remark}"] if self.remark else [])

    def without_kernel(self, nodes: Iterable[tuple[str, str]], imports: Mapping[str, int]) -> Iterator[str]:
        """Yields what to warn of: the operators among the nodes, (domain, operator) each, that it has no kernel for."""
        used = Counter((domain or "ai.onnx", operator) for domain, operator in nodes) if self.missing else Counter()
        for (domain, operator), count in used.items():
            opset = imports.get(domain, 0)
            for missing in self.missing:
                if missing.holds(domain, operator, opset):
                    way = f"; a lower opset may have one: {missing.remedy}" if missing.remedy else ""
                    at = f"opset {opset}" if domain == "ai.onnx" else f"opset {opset} of {domain}"
                    yield f"{self} has no kernel for {operator} at {at} (nodes: {count}){way}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the row as plain data, fit for JSON."""
        shown = ("name", "version", "opset", "minimum", "ir", "ml", "certainty", "source", "remark")
        return {**{name: getattr(self, name) for name in shown}, "also": self.also, "domains": dict(self.domains)}

    def _too_new(self, imports: Mapping[str, int], ir_version: int) -> dict[str, int]:
        """Returns the stamps above the limits; "" stands for the IR version."""
        limits = {"ai.onnx": self.opset, "ai.onnx.ml": self.ml, "": self.ir}
        stamps = {**imports, "": ir_version}
        return {key: stamps[key] for key, most in limits.items() if most is not None and stamps.get(key, 0) > most}


def find(text: str) -> Runtime:
    """Returns the row for `NAME@VERSION`; `==` and `:` do as well. An unlisted version takes the nearest older one.

    Without a version: the installed onnxruntime, or the newest row of another runtime. UsageError if nothing fits.
    """
    parsed = re.fullmatch(r"([\w.+-]+)(?:(?:@|==|:)v?([\w.+-]+))?", text.strip())
    if parsed is None:
        raise UsageError(f"{text!r} is no runtime: write NAME@VERSION, as onnxruntime@1.14")
    given, version = parsed[1], parsed[2] or ""
    rows = [row for row in listed() if row.name == _name(given)]
    guess = ""
    if not version and len(rows) > 1:
        name = rows[0].name
        here = name == "onnxruntime" or "like" in _tables()[name]
        version = _installed() if here else ""
        which = f"the one that is installed here, {version}" if version else f"the newest listed, {rows[-1].version}"
        guess = f"{name} without a version is taken to be {which}: --for {name}@VERSION names yours"
    if not version:
        return replace(rows[-1], guess=guess)
    key = _key(version)
    if not key:
        raise UsageError(f"{version!r} is no version of {rows[0].name}")
    older = [row for row in rows if (number := _key(row.version)) <= key + (0,) * (len(number) - len(key))]
    if not older:
        counted = _tables()[rows[0].name].get("counted", "")
        hint = f" (versions are {counted})" if counted else ""
        raise UsageError(
            f"{rows[0].name} {version} is older than all that is listed, which begins with {rows[0]}{hint}"
        )
    row = max(older, key=lambda row: _key(row.version))
    number = _key(row.version)
    notes: tuple[str, ...] = ()
    if number != key[: len(number)] or len(number) < min(2, len(key)):
        which = "the nearest older one" if row.version else "of which one row is known, without a version"
        told = f"{row.name} {version} is not listed: taken to be like {row}, {which}"
        if len(number) > len(key) and number[: len(key)] == key:
            told = f"{row.name} {version} is taken to be {row}, the oldest of it"
        notes = (told,)
    return replace(row, notes=notes, guess=guess)


def rows_of(text: str) -> tuple[Runtime, ...]:
    """Returns the rows of runtimes with this in their name or in another name that they have; with a version, the one
    row.

    UsageError if there are none.
    """
    if re.search("@|==|:", text):
        return (find(text),)
    wanted = text.strip().lower().replace("_", "-")
    found = tuple(row for row in listed() if any(wanted in name for name in (row.name, *row.also)))
    return found or (find(text),)


@lru_cache(maxsize=1)
def listed() -> tuple[Runtime, ...]:
    """Returns all rows, the versions of a runtime together and oldest first."""
    tables = _tables()
    releases = [(row["opset"], row["ir"], row["ml"]) for row in tables["onnx"]["rows"]]
    found: list[Runtime] = []
    for name, table in tables.items():
        for row in _rows(tables, table):
            inside = row.get("onnxruntime")
            stamps = next(r for r in tables["onnxruntime"]["rows"] if r["version"] == inside) if inside else row
            opset = stamps.get("opset")
            _, ir, ml = next((r for r in releases if opset and r[0] >= opset), (None, None, None))
            found.append(
                Runtime(
                    name=name,
                    version=row["version"],
                    title=table["title"],
                    opset=opset,
                    ir=stamps.get("ir", ir) or None,
                    ml=stamps.get("ml", ml) or None,
                    minimum=stamps.get("minimum", 1),
                    follows="ir" not in stamps,
                    certainty=row["certainty"],
                    source=row["source"],
                    remark=row.get("remark", ""),
                    missing=_missing(table, row["version"])
                    + (_missing(tables["onnxruntime"], inside) if inside else ()),
                    also=tuple(table.get("also", ())),
                    kernels=_kernels(tables, name, row),
                    provider=(*table["provider"], row["version"]) if "provider" in table else None,
                    domains=_domains((tables["onnxruntime"] if inside else table).get("domains", {}), opset),
                )
            )
    return tuple(found)


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    from importlib import resources

    text = resources.files("onnx_convert.target").joinpath("runtimes.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _rows(tables: Mapping[str, Any], table: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Returns the rows of a table: its own, or one for each release of the onnxruntime that it is `like`, from its
    `first` to its `last`."""
    if "like" not in table:
        rows: Iterable[Mapping[str, Any]] = table["rows"]
        return rows
    return [
        {"version": row["version"], "onnxruntime": row["version"], **{k: row[k] for k in ("certainty", "source")}}
        for row in tables[table["like"]]["rows"]
        if _key(table["first"]) <= _key(row["version"]) <= _key(table["last"])
    ]


def _domains(table: Mapping[str, Any], opset: int | None) -> tuple[tuple[str, int], ...]:
    """Returns the domains of a runtime besides those of ONNX, with the highest version of each."""
    return tuple((domain, opset or 0 if most == "opset" else most) for domain, most in table.items())


def _kernels(tables: Mapping[str, Any], name: str, row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the table of the kernels of a row, or of the onnxruntime inside, and the release in that table."""
    inside = row.get("onnxruntime")
    table = tables["onnxruntime" if inside else name].get("kernels")
    return (table, inside or row["version"]) if table else None


def _missing(table: Mapping[str, Any], version: str) -> tuple[Missing, ...]:
    """Returns the operators without a kernel at a version of a runtime."""
    return tuple(
        Missing(item.get("domain", "ai.onnx"), tuple(item.get("operators", ())), item["at"])
        for item in table.get("missing", ())
        if _key(item["first"]) <= _key(version) <= _key(item["last"])
    )


def _name(given: str) -> str:
    """Returns the listed name for one that users write; UsageError names those that look like it."""
    names = {alias: name for name, table in _tables().items() for alias in (name, *table.get("also", ()))}
    wanted = given.lower().replace("_", "-")
    if wanted in names:
        return names[wanted]
    import difflib

    if given.isdecimal():
        raise UsageError(f"{given!r} is no runtime: an opset is given by --to {given}")
    parts = re.fullmatch(r"(.*?)-v?(\d+([.]\d+)*)|(.*?)(\d+([.]\d+)+)", wanted)
    if parts is not None and (name := names.get(parts[1] or parts[4])):
        raise UsageError(f"no runtime {given!r} is listed: a version follows an @, {name}@{parts[2] or parts[5]}")
    near = list(dict.fromkeys(names[match] for match in difflib.get_close_matches(wanted, names, n=4, cutoff=0.7)))
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(
        f"no runtime {given!r} is listed: {hint}--list-runtimes lists all, with their other names; "
        "--to N does without, where you know the opset"
    )


def _key(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version; a Windows of 20H2 is one of December 2020."""
    dated = re.sub(r"(\d\d)[hH]([12])", lambda half: f"{half[1]}{int(half[2]) * 6:02}", version)
    return tuple(int(number) for number in re.findall(r"\d+", dated))


def _installed() -> str:
    """Returns the version of the onnxruntime that is installed, whichever distribution brought it; "" if none is."""
    from importlib import metadata

    for distribution in _HERE:
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return ""
