# SPDX-License-Identifier: Apache-2.0
"""Which opsets a model imports, and which ones a request means for it."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING

import onnx

from onnx_convert.errors import InvalidModelError, UsageError
from onnx_convert.rewrite import plugins, registry
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto

    from onnx_convert.spec.opsets import Imports

Target = int | str | Mapping[str, int | str]


def imports_of(holder: ModelProto | FunctionProto, where: str) -> Imports:
    """The opset of each domain that a model or function imports; empty for IR versions 1 and 2, which had no imports.

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


class OpsetImports:
    """The imports of a model and of its functions."""

    def __init__(self, model: ModelProto, where: str) -> None:
        self.main = imports_of(model, where) or {opsets.AI_ONNX: 1}
        self.functions = [imports_of(f, f"{where}: function {f.name}") for f in model.functions]
        self.everywhere: Imports = {}  # the highest opset of each domain
        for imports in (self.main, *self.functions):
            for domain, version in imports.items():
                self.everywhere[domain] = max(version, self.everywhere.get(domain, 0))

    def resolve(self, to: Target | None) -> Imports:
        """The opset that each domain goes to; those that stay are there too if their operators are known.

        ai.onnx.ml follows ai.onnx to the release of the target unless it is named, and never goes the other way.
        UsageError for an opset that does not exist, or a domain that nobody knows.
        """
        target = {domain: version for domain, version in self.main.items() if opsets.is_known(domain)}
        asked = _by_domain(to)
        for domain, version in asked.items():
            if not opsets.is_known(domain):
                broken = plugins.load()
                if not registry.has_domain(domain):
                    raise UsageError("; ".join([f"no adapter is registered for domain {domain!r}", *broken]))
            target[domain] = _version(domain, version)
        present = self.everywhere.get(opsets.AI_ONNX_ML)
        if opsets.AI_ONNX in asked and present is not None and opsets.AI_ONNX_ML not in asked:
            usual = opsets.ml_opset_of(target[opsets.AI_ONNX])
            rises = target[opsets.AI_ONNX] >= self.everywhere.get(opsets.AI_ONNX, 0)
            target[opsets.AI_ONNX_ML] = max(present, usual) if rises else min(present, usual)
        if opsets.AI_ONNX not in target:  # where functions stay, and what adapters of other domains write
            ml = opsets.opset_of_ml(target.get(opsets.AI_ONNX_ML, 1))
            target[opsets.AI_ONNX] = self.everywhere.get(opsets.AI_ONNX, ml)
        return target

    def moves(self, target: Imports) -> bool:
        """Whether anything has to go to another opset."""
        return any(
            target.get(domain, version) != version
            for imports in (self.main, *self.functions)
            for domain, version in imports.items()
        )

    def rises(self, target: Imports) -> bool:
        """Whether nothing goes down: ai.onnx decides, and the others where it is not imported."""
        if opsets.AI_ONNX in self.everywhere:
            return target[opsets.AI_ONNX] >= self.everywhere[opsets.AI_ONNX]
        return all(target.get(domain, version) >= version for domain, version in self.main.items())


def _by_domain(to: Target | None) -> dict[str, int | str]:
    if to is None:
        return {}
    if not isinstance(to, Mapping):
        return {opsets.AI_ONNX: to}
    asked: dict[str, int | str] = {}
    for domain, version in to.items():
        if asked.setdefault(opsets.canonical_domain(domain), version) != version:
            raise UsageError(f"{opsets.shown(domain)} is asked for at two opsets")
    return asked


def _version(domain: str, version: int | str) -> int:
    if version == "latest":
        if not opsets.is_known(domain):
            raise UsageError(f"what the latest opset of {domain!r} is, only its authors know: give a number")
        return opsets.latest(domain)
    if isinstance(version, bool) or not hasattr(version, "__index__"):
        raise UsageError(f"{version!r} is not an opset: give a number or 'latest'")
    version = index(version)
    if version < 1 or (opsets.is_known(domain) and version > opsets.latest(domain)):
        newest = opsets.latest(domain) if opsets.is_known(domain) else "..."
        raise UsageError(
            f"there is no opset {version} of {opsets.shown(domain)}: the installed onnx {onnx.__version__} "
            f"knows 1 to {newest}"
        )
    return version
