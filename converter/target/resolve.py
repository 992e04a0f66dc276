# SPDX-License-Identifier: Apache-2.0
"""Resolves a request for one model: to which opsets and which IR version it goes."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, NamedTuple

import onnx

from onnx_convert.errors import UsageError
from onnx_convert.rewrite import plugins, registry
from onnx_convert.spec import opsets
from onnx_convert.target import ir_versions

if TYPE_CHECKING:
    from onnx_convert.model.opset_imports import OpsetImports
    from onnx_convert.model.source import SourceModel
    from onnx_convert.rewrite.kernels import Kernels
    from onnx_convert.spec.opsets import Imports
    from onnx_convert.target.request import Opsets, Request
    from onnx_convert.target.runtimes import Runtime


class Target(NamedTuple):
    """The destination of one model: the opset of each domain, an IR version, and the runtime that has to load the
    result, if one was named, with its kernels, if they are known. `moves` says that an opset differs from the model's
    or from its stamp, `rises` that none is lower."""

    opsets: Imports
    ir_version: int
    moves: bool
    rises: bool
    runtime: Runtime | None = None
    kernels: Kernels | None = None


def resolve(source: SourceModel, request: Request, opset: int | None = None) -> Target:
    """Returns the target that a request means for a model; for a runtime at the ai.onnx `opset`, if one is given.
    UsageError if it means none."""
    imports, model, runtime = source.imports, source.proto, request.runtime
    wanted = runtime.opsets_for(imports.shown) if runtime else request.to
    if runtime is not None and opset is not None:
        wanted = {**runtime.opsets_for(imports.shown), "ai.onnx": opset}
    target = opsets_of(imports, wanted)
    if runtime is not None:
        target |= unused_excess(source, runtime)
    moves = imports.moves(target) or (source.restamping is not None and source.restamping.moves(target))
    rises, keep = imports.rises(target), request.options.keep_functions
    opset, ir_version = target[opsets.AI_ONNX], max(model.ir_version, opsets.INPUTS_ONLY)
    if runtime is not None:
        raised = opset > imports.main.get(opsets.AI_ONNX, opset)
        ir_version = ir_versions.within(
            model, source.index.graphs, opset, runtime.ir, request.ir_version, raised=raised, keep_functions=keep
        )
    elif moves or request.ir_version is not None:
        ir_version = ir_versions.choose(
            model, source.index.graphs, opset, request.ir_version, rising=rises, keep_functions=keep
        )
    kernels = None
    if runtime is not None and runtime.kernels is not None:
        from onnx_convert.target.kernels import of_runtime

        kernels = of_runtime(runtime)
    return Target(target, ir_version, moves, rises, runtime, kernels)


def unused_excess(source: SourceModel, runtime: Runtime) -> Imports:
    """Returns the highest version that a runtime loads of each domain that is imported at a higher one, but not used:
    optimisers leave such imports behind."""
    used = {opsets.canonical_domain(domain) for domain, _ in source.index.operators}
    return {domain: most for domain, most in runtime.excess(source.imports.main).items() if domain not in used}


def opsets_of(imports: OpsetImports, to: Opsets | None) -> Imports:
    """Returns the opset that each domain goes to; those that stay are there too if their operators are known.

    Unless it is named, ai.onnx.ml follows ai.onnx down to the release of the target, and stays where it is on the way
    up. UsageError for an opset that does not exist, or a domain or a version of one that nobody knows.
    """
    target = {domain: version for domain, version in imports.main.items() if opsets.is_known(domain)}
    asked = _by_domain(to)
    for domain, version in asked.items():
        if not opsets.is_known(domain):
            broken = plugins.load()
            if not registry.has_domain(domain):
                stays = (
                    "ai.onnx.ml is one that is" if domain == "ml" else f"without --to {domain}:... it stays as it is"
                )
                raise UsageError("; ".join([f"no adapter is registered for domain {domain!r}: {stays}", *broken]))
        target[domain] = _version(domain, version)
        if not opsets.is_known(domain):
            _registered(domain, imports.everywhere.get(domain, target[domain]), target[domain])
    present = imports.everywhere.get(opsets.AI_ONNX_ML)
    if opsets.AI_ONNX in asked and present is not None and opsets.AI_ONNX_ML not in asked:
        rises = target[opsets.AI_ONNX] >= imports.everywhere.get(opsets.AI_ONNX, 0)
        usual = opsets.ml_opset_of(target[opsets.AI_ONNX])
        target[opsets.AI_ONNX_ML] = present if rises else min(present, usual)
    if opsets.AI_ONNX not in target:  # where functions stay, and what adapters of other domains write
        ml = opsets.opset_of_ml(target.get(opsets.AI_ONNX_ML, 1))
        target[opsets.AI_ONNX] = imports.everywhere.get(opsets.AI_ONNX, ml)
    return target


def check_opsets(to: Opsets | None) -> None:
    """Raises UsageError for opsets that make no sense for any model."""
    for domain, version in _by_domain(to).items():
        _version(domain, version)


def _registered(domain: str, present: int, wanted: int) -> None:
    """Raises UsageError if a model would have to go to, or come from, a version of a domain for which nobody registered
    anything: what changed there is not known."""
    newest = max(registry.boundaries_of(domain))
    for version in (wanted, present):
        if present != wanted and version > newest:
            raise UsageError(
                f"nothing is registered for {domain} {version}: what is known of {domain} ends at {newest}"
            )


def _by_domain(to: Opsets | None) -> dict[str, int | str]:
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
