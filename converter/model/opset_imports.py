# SPDX-License-Identifier: Apache-2.0
"""The opsets that a model and its functions import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from onnx_convert.errors import InvalidModelError
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto

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
