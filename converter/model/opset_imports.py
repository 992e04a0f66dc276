# SPDX-License-Identifier: Apache-2.0
"""The opsets that a model and its functions import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from onnx_convert.errors import InvalidModelError, UsageError
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, OperatorSetIdProto

    from onnx_convert.spec.opsets import Imports


def imports_of(holder: ModelProto | FunctionProto, where: str) -> Imports:
    """Returns the opset of each domain that a model or function imports; none for IR versions 1 and 2, which had no
    imports.

    InvalidModelError for an opset that does not exist, or that the installed onnx does not know.
    """
    found: Imports = {}
    for entry in holder.opset_import:
        domain, shown = opsets.canonical_domain(entry.domain), opsets.shown(entry.domain)
        if found.setdefault(domain, entry.version) != entry.version:
            raise InvalidModelError(f"{shown} is imported at two opsets", where=where)
        if entry.version < 1:
            raise InvalidModelError(f"opset {entry.version} of {shown} does not exist", where=where)
        if opsets.is_known(domain) and entry.version > opsets.latest(domain):
            raise InvalidModelError(
                f"opset {entry.version} of {shown} is newer than the installed onnx {onnx.__version__} "
                f"knows ({opsets.latest(domain)}); a newer onnx may know it",
                where=where,
            )
    return found


class Restamping:
    """The opsets that a model is read at although its stamp says others, in its functions too; they are written into
    the message, and `undo` takes them out again.

    `main` is what the stamp of the model says, by domain, where it says something else; `functions` those of functions.
    UsageError for a domain that nobody imports.
    """

    def __init__(self, model: ModelProto, wanted: Imports) -> None:
        self._entries: list[tuple[OperatorSetIdProto, int]] = []
        self._model = model
        self._added = not model.opset_import  # IR versions 1 and 2 had none
        if self._added:
            model.opset_import.add(domain=opsets.AI_ONNX, version=1)
        self.main = self._restamp(model, wanted)
        self.functions = {
            f"{opsets.shown(function.domain)}.{function.name}": was
            for function in model.functions
            if (was := self._restamp(function, wanted))
        }
        imported = {opsets.canonical_domain(e.domain) for h in (model, *model.functions) for e in h.opset_import}
        for domain in wanted:
            if domain not in imported:
                raise UsageError(
                    f"the model does not import {opsets.shown(domain)}: it has no stamp that could be wrong"
                )

    def _restamp(self, holder: ModelProto | FunctionProto, wanted: Imports) -> Imports:
        """Writes what is wanted into the imports of a model or function; returns what was there instead."""
        before: Imports = {}
        for entry in holder.opset_import:
            domain = opsets.canonical_domain(entry.domain)
            if wanted.get(domain, entry.version) != entry.version:
                before[domain] = entry.version
                self._entries.append((entry, entry.version))
                entry.version = wanted[domain]
        return before

    def moves(self, target: Imports) -> bool:
        """Returns whether any stamp is another one than that of a target."""
        return any(target.get(opsets.canonical_domain(e.domain), e.version) != version for e, version in self._entries)

    def undo(self) -> None:
        """Writes what was there before."""
        for entry, version in self._entries:
            entry.version = version
        if self._added:
            del self._model.opset_import[:]

    @property
    def shown(self) -> Imports:
        """What the stamp of the model says, for people: the default domain is "ai.onnx"."""
        return {opsets.shown(domain): version for domain, version in self.main.items()}

    @property
    def told(self) -> list[str]:
        """What is to be said of it, a sentence for each domain."""
        domains = dict.fromkeys([*self.main, *(domain for was in self.functions.values() for domain in was)])
        now = {opsets.canonical_domain(entry.domain): entry.version for entry, _ in self._entries}
        return [self._sentence(domain, now[domain]) for domain in domains]

    def _sentence(self, domain: str, now: int) -> str:
        stamp = self.main.get(domain)
        others = [f"{name} {was[domain]}" for name, was in self.functions.items() if was.get(domain, stamp) != stamp]
        stamps = ", ".join([*([str(stamp)] if stamp is not None else []), *(f"function {other}" for other in others)])
        return f"read as {opsets.shown(domain)} {now} (--from), although stamped {stamps}"


class OpsetImports:
    """The opset of each domain: `main` of the model, `functions` of each function, `everywhere` the highest of all."""

    def __init__(self, model: ModelProto, where: str) -> None:
        self.main = imports_of(model, where) or {opsets.AI_ONNX: 1}
        self.functions = [imports_of(f, f"{where}: function {f.name}") for f in model.functions]
        self.everywhere: Imports = {}
        for imports in (self.main, *self.functions):
            for domain, version in imports.items():
                self.everywhere[domain] = max(version, self.everywhere.get(domain, 0))

    @property
    def shown(self) -> Imports:
        """The imports of the model for people: the default domain is "ai.onnx"."""
        return {opsets.shown(domain): version for domain, version in self.main.items()}

    def moves(self, target: Imports) -> bool:
        """Returns whether anything has to go to another opset."""
        return any(
            target.get(domain, version) != version
            for imports in (self.main, *self.functions)
            for domain, version in imports.items()
        )

    def rises(self, target: Imports) -> bool:
        """Returns whether nothing goes down: ai.onnx decides, and the others where it is not imported."""
        if opsets.AI_ONNX in self.everywhere:
            return target[opsets.AI_ONNX] >= self.everywhere[opsets.AI_ONNX]
        return all(target.get(domain, version) >= version for domain, version in self.main.items())
