# SPDX-License-Identifier: Apache-2.0
"""Conversion from end to end: open, plan, check, apply; writing is asked for apart. Description: open, look, plan."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Collection, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import ModelProto

import onnx_convert.adapters  # noqa: F401  (fills the registry when asked)
from onnx_convert import checks, edits, irversion, judgement, modelfile, opsets, structure
from onnx_convert.carrier import Options
from onnx_convert.conversion import Conversion
from onnx_convert.errors import InternalError, InvalidModelError, RefusedError, UsageError
from onnx_convert.planner import Planner
from onnx_convert.report import Report
from onnx_convert.targets import Stamps, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onnx import TensorProto

    from onnx_convert.describe import Description
    from onnx_convert.edits import ModelEdit
    from onnx_convert.modelfile import ModelFile
    from onnx_convert.reach import Reach
    from onnx_convert.runtimes import Runtime
    from onnx_convert.structure import Census

Model = Any  # a path, bytes, a ModelProto or an onnx_ir.Model


class _Request(NamedTuple):
    """What the user asked for, before the model is known."""

    to: Target | None
    options: Options
    ir_version: int | None
    runtime: Runtime | None = None


def convert(
    model: Model,
    to: Target | None = None,
    *,
    target: str | None = None,
    types: str = "refuse",
    exact: bool = False,
    allow: Collection[str] = (),
    strict: bool = False,
    expand: str = "",
    keep_functions: bool = False,
    ir_version: int | None = None,
    in_place: bool = False,
) -> Conversion:
    """Carries a model to another opset without changing what it computes.

    Args:
        model: a path, the bytes of a file, a `ModelProto` or an `onnx_ir.Model`; not changed unless `in_place`.
        to: an ai.onnx opset, "latest", or opsets by domain, `{"ai.onnx": 14, "ai.onnx.ml": 3}`. ai.onnx.ml follows
            ai.onnx to the opset of the same ONNX release unless it is named.
        target: instead of `to`, a runtime that has to load the result: "onnxruntime@1.14". Opsets and IR version change
            only where that one needs it; a note of the report says what was too new.
        types: what becomes of a dtype that the target's operator does not take: "refuse" it, "cast" to a wider dtype
            and back where that is exact, or "cast-rounding" also where the rounding differs.
        exact: refuse rewrites whose float rounding may differ, or what no text specifies.
        allow: {"conditional"} allows rewrites that are right only under a condition on the data.
        strict: refuse what has to be assumed because a dtype cannot be known.
        expand: "all" writes out even operators whose replacement is very large, such as NonMaxSuppression.
        keep_functions: do not expand model-local functions, for the sake of an old IR version or of a node in one that
            can only be carried where the function is called: that is refused then.
        ir_version: the IR version to stamp, instead of the one that goes with the opset; with `target`, a lower one.
        in_place: change a `ModelProto` itself; its weights are then not copied.

    Raises:
        RefusedError: some nodes cannot be carried; nothing is changed.
        InvalidModelError: the model cannot be read or makes no sense.
        UsageError: the request makes no sense.
    """
    request = _request(to, target, types, exact, allow, strict, expand, keep_functions, ir_version)
    if in_place and not isinstance(model, ModelProto):
        raise UsageError("in_place needs a ModelProto; to replace a file, save to its path")
    started = time.perf_counter()
    source, original, wrap = _open(model)
    try:
        proto = original
        if isinstance(model, ModelProto) and not in_place:
            proto = ModelProto()
            proto.CopyFrom(original)
        with _no_collection():
            report, edit = _plan(proto, request, _reader(source), _shown(model))
            edits.apply(edit, proto)
            del edit  # or the collector goes through all of it
    except BaseException:
        if source is not None:
            source.close()
        raise
    report.seconds = time.perf_counter() - started
    return Conversion(proto, report, source, wrap)


def plan(
    model: Model,
    to: Target | None = None,
    *,
    target: str | None = None,
    types: str = "refuse",
    exact: bool = False,
    allow: Collection[str] = (),
    strict: bool = False,
    expand: str = "",
    keep_functions: bool = False,
    ir_version: int | None = None,
) -> Report:
    """What `convert` would do, without a model: the same checks, the same errors, the same report."""
    request = _request(to, target, types, exact, allow, strict, expand, keep_functions, ir_version)
    started = time.perf_counter()
    source, proto, _ = _open(model)
    try:
        report, _ = _plan(proto, request, _reader(source), _shown(model))
    finally:
        if source is not None:
            source.close()
    report.seconds = time.perf_counter() - started
    return report


def inspect(
    model: Model,
    *,
    types: str = "refuse",
    exact: bool = False,
    allow: Collection[str] = (),
    strict: bool = False,
    expand: str = "",
    keep_functions: bool = False,
) -> Description:
    """What a model is, how far `convert` with the same options can carry it, and which runtimes load it as it is.

    Raises InvalidModelError if it cannot be read or makes no sense.
    """
    from onnx_convert import describe

    request = _request("latest", None, types, exact, allow, strict, expand, keep_functions, None)
    started = time.perf_counter()
    source, proto, _ = _open(model)
    try:
        where = _shown(model)
        stamps = Stamps(proto, where)
        census = structure.examine(proto, where)
        judgement.judge(proto, where)
        reach = _reach(proto, request, _reader(source), stamps, census)
        description = describe.describe(proto, stamps.main, reach, where)
    finally:
        if source is not None:
            source.close()
    description.seconds = time.perf_counter() - started
    return description


def convert_version(model: ModelProto, target_version: int) -> ModelProto:
    """A drop-in for `onnx.version_converter.convert_version`: the model at another ai.onnx opset, as a new object."""
    converted: ModelProto = convert(model, to=target_version).model
    return converted


# ---- the steps


def _plan(
    proto: ModelProto, request: _Request, read: Callable[[TensorProto], TensorProto], where: str
) -> tuple[Report, ModelEdit]:
    """The report and the edit for a model that is only read; RefusedError if there is no way."""
    stamps = Stamps(proto, where)
    imports = stamps.main
    runtime = request.runtime
    report = Report(source=where, ir_version_before=proto.ir_version)
    report.opsets_before = {opsets.shown(domain): version for domain, version in imports.items()}
    target = stamps.resolve(runtime.opsets_for(report.opsets_before) if runtime else request.to)
    report.opsets_after = {opsets.shown(d): target.get(d, version) for d, version in imports.items()}
    census = structure.examine(proto, where)
    judgement.judge(proto, where)
    report.nodes_before = census.nodes
    moved, rising, keep = stamps.moves(target), stamps.rises(target), request.options.keep_functions
    ir_version = max(proto.ir_version, irversion.INPUTS_ONLY)
    if runtime is not None:
        raised = target[""] > imports.get("", target[""])
        ir_version = irversion.within(
            proto, census.graphs, target[""], runtime.ir, request.ir_version, raised=raised, keep_functions=keep
        )
        report.notes += [runtime.verdict(report.opsets_before, proto.ir_version), *runtime.remarks]
        report.warnings += filter(None, [runtime.doubt])
    elif moved or request.ir_version is not None:
        ir_version = irversion.choose(
            proto, census.graphs, target[""], request.ir_version, rising=rising, keep_functions=keep
        )
    planner = Planner(proto, imports, target, ir_version, request.options, read, report, census)
    try:
        edit = planner.plan()
    except InternalError as error:
        if planner.faults:
            raise InvalidModelError(
                f"does not pass onnx's own check: {checks.lines_of(planner.faults[0])[0]}", where=where
            ) from error
        raise
    if runtime is not None:
        report.refusals += irversion.excess(proto, census.graphs, runtime.ir, str(runtime), keep_functions=keep)
        nodes = (node for body in edit.bodies for graph in body.walk() for node in graph.nodes)
        report.warnings += runtime.without_kernel(((n.domain, n.op_type) for n in nodes), report.opsets_after)
    if report.refusals:
        reach = _reach(proto, request, read, stamps, census)
        raise RefusedError(report.refusals, report, reach.nearest(target[""], report.refusals))
    if edit.any_change or moved:
        known = planner.take_known()
        checks.check(proto, edit, read, planner.rewrites, known, report, census, planner.operators, planner.false)
    if planner.session.took_ir3_initializer:
        report.notes.append("IR version 3 makes every initializer an input: they were taken to be constant")
    added = {domain for body in edit.graph.walk() for domain in body.domains} - imports.keys()
    report.opsets_after |= {opsets.shown(domain): target[domain] for domain in added if domain in target}
    report.touched = edit.any_change or moved
    report.ir_version_after = ir_version
    report.nodes_after = edit.count()
    return report, edit


def _reach(
    proto: ModelProto,
    request: _Request,
    read: Callable[[TensorProto], TensorProto],
    stamps: Stamps,
    census: Census,
) -> Reach:
    """How far the model can be carried, whatever other domains were asked for as well."""
    from onnx_convert.reach import Reach

    def target(opset: int) -> dict[str, int]:
        asked = request.to if isinstance(request.to, Mapping) else {}
        others = {domain: version for domain, version in asked.items() if opsets.normalise(domain) != opsets.AI_ONNX}
        return stamps.resolve({**others, opsets.AI_ONNX: opset})

    return Reach(proto, stamps.main, target, request.options, read, census)


def _request(
    to: Target | None,
    runtime: str | None,
    types: str,
    exact: bool,
    allow: Collection[str],
    strict: bool,
    expand: str,
    keep_functions: bool,
    ir_version: int | None,
) -> _Request:
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
    options = Options(types, exact, bool(allowed), strict, expand == "all", keep_functions)
    version = int(ir_version) if ir_version is not None else None
    return _Request(to, options, version, _runtime(runtime) if runtime is not None else None)


def _runtime(name: str) -> Runtime:
    from onnx_convert import runtimes

    return runtimes.find(name)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keeps the cycle collector from walking through all messages again and again while there are ever more of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# ---- kinds of models


def _open(model: Model) -> tuple[ModelFile | None, ModelProto, Callable[[ModelProto], Any]]:
    """The file behind a model (None for one in memory), its message, and what turns a message into the given kind."""
    if isinstance(model, ModelProto):
        return None, model, lambda proto: proto
    if isinstance(model, bytes):
        source = modelfile.open_bytes(model)
        return source, source.model, lambda proto: proto
    if isinstance(model, str | os.PathLike):
        source = modelfile.open_model(model)
        try:
            source.check_external()
        except BaseException:
            source.close()
            raise
        return source, source.model, lambda proto: proto
    ir = sys.modules.get("onnx_ir")  # whoever has such a model has imported it
    if ir is not None and isinstance(model, ir.Model):
        return None, ir.to_proto(model), ir.from_proto
    raise UsageError(f"a model is a path, bytes, a ModelProto or an onnx_ir.Model, not {type(model).__name__}")


def _reader(source: ModelFile | None) -> Callable[[TensorProto], TensorProto]:
    return source.tensor if source is not None else lambda tensor: tensor


def _shown(model: Model) -> str:
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    return "<stdin>" if isinstance(model, bytes) else f"<{type(model).__name__}>"
