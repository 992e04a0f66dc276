# SPDX-License-Identifier: Apache-2.0
"""The request of a user, checked as far as it can be before the model is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import index
from typing import TYPE_CHECKING, Final, NamedTuple

from onnx_convert.errors import UsageError
from onnx_convert.options import Options
from onnx_convert.spec import opsets

if TYPE_CHECKING:
    from onnx_convert.target.runtimes import Runtime

_HIGHEST: Final = 2**63 - 1

Opsets = int | str | Mapping[str, int | str]
"""An ai.onnx opset, "latest", or either by domain."""


class Request(NamedTuple):
    """The target (opsets, or a runtime that has to load the result), an IR version, and what is allowed."""

    to: Opsets | None
    options: Options
    ir_version: int | None = None
    runtime: Runtime | None = None
    stamps: opsets.Imports | None = None  # to read the model at, whatever it is stamped with, by domain
    examples: bool = False  # whether the report is to show one place of each kind of rewrite

    def at(self, opset: int) -> Request:
        """Returns the request for an ai.onnx opset instead, with the other domains that this one names."""
        asked = self.to if isinstance(self.to, Mapping) else {}
        others = {domain: version for domain, version in asked.items() if opsets.canonical_domain(domain)}
        return Request({**others, opsets.AI_ONNX: opset}, self.options)


def requested(
    to: Opsets | None,
    runtime: str | None = None,
    ir_version: int | None = None,
    *,
    types: str = "refuse",
    exact: bool = False,
    allow: Collection[str] = (),
    strict: bool = False,
    expand: str = "",
    keep_functions: bool = False,
    keep_initializer_inputs: bool = False,
    source_opset: int | Mapping[str, int] | None = None,
    examples: bool = False,
) -> Request:
    """Returns the request that these arguments of the API make. UsageError if they contradict each other."""
    if types not in ("refuse", "cast", "cast-rounding"):
        raise UsageError(f"types is 'refuse', 'cast' or 'cast-rounding', not {types!r}")
    if not isinstance(allow, Collection):
        raise UsageError(f"what is allowed is a collection of names, {{'conditional'}}, not {allow!r}")
    if runtime is not None and not isinstance(runtime, str):
        raise UsageError(f"a runtime is a name and a version, 'onnxruntime@1.14', not {runtime!r}")
    allowed = {allow} if isinstance(allow, str) else set(allow)
    if allowed - {"conditional"}:
        raise UsageError(f"only 'conditional' can be allowed, not {min(allowed - {'conditional'})!r}")
    if ir_version is not None and (isinstance(ir_version, bool) or not hasattr(ir_version, "__index__")):
        raise UsageError(f"{ir_version!r} is not an IR version: give a number")
    if expand not in ("", "all"):
        raise UsageError(f"expand is 'all' or left out, not {expand!r}")
    if exact and (types == "cast-rounding" or allowed):
        raise UsageError("exact contradicts cast-rounding and allowing conditional rewrites")
    if (to is None or to == {}) and runtime is None and ir_version is None:
        raise UsageError("say where to: an opset, 'latest', a runtime, or an IR version")
    if to is not None and runtime is not None:
        raise UsageError("an opset and a runtime exclude each other")
    options = Options(types, exact, bool(allowed), strict, expand == "all", keep_functions, keep_initializer_inputs)
    version = int(ir_version) if ir_version is not None else None
    return Request(
        to, options, version, _found(runtime) if runtime is not None else None, _stamps(source_opset), examples
    )


def _stamps(declared: int | Mapping[str, int] | None) -> opsets.Imports | None:
    """Returns the opsets that a model is declared to have, by domain. UsageError for one that does not exist."""
    if declared is None:
        return None
    given = declared if isinstance(declared, Mapping) else {opsets.AI_ONNX: declared}
    stamps: opsets.Imports = {}
    for name, version in given.items():
        domain = opsets.canonical_domain(name)
        if isinstance(version, bool) or not hasattr(version, "__index__"):
            raise UsageError(f"{version!r} is not an opset that a model can have: give a number")
        if stamps.setdefault(domain, index(version)) != version:
            raise UsageError(f"{opsets.shown(domain)} is declared at two opsets")
        newest = opsets.latest(domain) if opsets.is_known(domain) else _HIGHEST
        if not 1 <= version <= newest:
            known = f": the installed onnx knows 1 to {newest}" if opsets.is_known(domain) else ""
            raise UsageError(f"no model has opset {version} of {opsets.shown(domain)}{known}")
    return stamps


def _found(runtime: str) -> Runtime:
    from onnx_convert.target import runtimes

    return runtimes.find(runtime)
