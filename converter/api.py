# SPDX-License-Identifier: Apache-2.0
"""The functions that users call: open, plan, apply; writing is asked for apart."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import onnx_convert.adapters  # noqa: F401  (fills the registry when asked)
from onnx_convert.conversion import Conversion
from onnx_convert.model.patch import apply
from onnx_convert.planning.pipeline import planned
from onnx_convert.storage.source import open_source, open_to_change
from onnx_convert.target.request import requested

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping

    from onnx import ModelProto

    from onnx_convert.reference.model_summary import Description
    from onnx_convert.report import Report
    from onnx_convert.target.request import Opsets
    from onnx_convert.verification.outcome import Verification

    Inputs = str | os.PathLike[str] | Mapping[str, Any]

Model = Any  # a path, bytes, a ModelProto, an onnx_ir.Model or an ONNXProgram of torch


def convert(
    model: Model,
    to: Opsets | None = None,
    *,
    runtime: str | None = None,
    types: str = "refuse",
    exact: bool = False,
    allow: Collection[str] = (),
    strict: bool = False,
    expand: str = "",
    keep_functions: bool = False,
    keep_initializer_inputs: bool = False,
    ir_version: int | None = None,
    source_opset: int | Mapping[str, int] | None = None,
    examples: bool = False,
    in_place: bool = False,
) -> Conversion:
    """Converts a model to another opset without changing what it computes.

    Args:
        model: a path, the bytes of a file, a `ModelProto`, an `onnx_ir.Model` or what `torch.onnx.export` gives back;
            not changed unless `in_place`.
        to: an ai.onnx opset, "latest", or opsets by domain, `{"ai.onnx": 14, "ai.onnx.ml": 3}`. Unless it is named,
            ai.onnx.ml follows ai.onnx down to the opset of the same ONNX release, and stays where it is on the way up.
        runtime: instead of `to`, a runtime that has to load the result: "onnxruntime@1.14". Opsets and IR version
            change only where that one needs it; a note of the report says what was too new.
        types: what becomes of a dtype that the target's operator does not take: "refuse" it, "cast" to a wider dtype
            and back where that is exact, or "cast-rounding" also where the rounding differs.
        exact: refuse rewrites whose float rounding may differ, or what no text specifies.
        allow: {"conditional"} allows rewrites that are right only under a condition on the data.
        strict: refuse what has to be assumed because a dtype cannot be known.
        expand: "all" writes out even operators whose replacement is very large, such as NonMaxSuppression.
        keep_functions: do not inline model-local functions, for the sake of an old IR version or of a node in one that
            can only be converted where the function is called: that is refused then.
        keep_initializer_inputs: leave initializers among the inputs on the way from IR version 3 or older, where they
            all are, to a newer one, where that says that a caller may replace them.
        ir_version: the IR version to stamp, instead of the one that goes with the opset; with `runtime`, a lower one.
        source_opset: says that the stamp of the model is wrong: read it, and its functions, as if stamped with this
            ai.onnx opset, or with opsets by domain; the report has what the stamp says as `stamped`.
        examples: keep one place of each kind of rewrite in the report, `report.examples`: the nodes before and after.
        in_place: change a `ModelProto` itself; its weights are then not copied.

    Raises:
        RefusedError: some nodes cannot be converted; nothing is changed.
        InvalidModelError: the model cannot be read or makes no sense.
        UsageError: the request makes no sense.
    """
    request = requested(
        to, runtime, ir_version, types=types, exact=exact, allow=allow, strict=strict, expand=expand,
        keep_functions=keep_functions, keep_initializer_inputs=keep_initializer_inputs, source_opset=source_opset,
        examples=examples,
    )  # fmt: skip
    started = time.perf_counter()
    with ExitStack() as stack:
        source = stack.enter_context(open_to_change(model, request.stamps, in_place=in_place))
        if source.restamping is not None:
            stack.callback(source.restamping.undo)
        patch, report = planned(source, request)
        apply(patch, source.proto)
        stack.pop_all()  # the weights are still there, and stay there for `save`
    report.seconds = time.perf_counter() - started
    return Conversion(source, report)


def plan(
    model: Model,
    to: Opsets | None = None,
    *,
    runtime: str | None = None,
    types: str = "refuse",
    exact: bool = False,
    allow: Collection[str] = (),
    strict: bool = False,
    expand: str = "",
    keep_functions: bool = False,
    keep_initializer_inputs: bool = False,
    ir_version: int | None = None,
    source_opset: int | Mapping[str, int] | None = None,
    examples: bool = False,
) -> Report:
    """Reports what `convert` would do, without a model: the same checks, the same errors, the same report."""
    request = requested(
        to, runtime, ir_version, types=types, exact=exact, allow=allow, strict=strict, expand=expand,
        keep_functions=keep_functions, keep_initializer_inputs=keep_initializer_inputs, source_opset=source_opset,
        examples=examples,
    )  # fmt: skip
    started = time.perf_counter()
    with open_source(model, request.stamps) as source:
        _, report = planned(source, request)
        report.source_bytes = source.file.size if source.file is not None else 0
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
    source_opset: int | Mapping[str, int] | None = None,
) -> Description:
    """Describes a model: what it is, how far `convert` with the same options can bring it, and which runtimes load it
    as it is.

    Raises InvalidModelError if it cannot be read or makes no sense.
    """
    from onnx_convert.reference.model_summary import describe

    request = requested(
        "latest", types=types, exact=exact, allow=allow, strict=strict, expand=expand, keep_functions=keep_functions,
        source_opset=source_opset,
    )  # fmt: skip
    started = time.perf_counter()
    with open_source(model, request.stamps, incomplete=True) as source:
        description = describe(source, request)
    description.seconds = time.perf_counter() - started
    return description


def verify(
    source: Model,
    result: Model,
    *,
    inputs: Inputs | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    seeds: int = 3,
    report: Report | None = None,
    bundle: str | os.PathLike[str] | None = None,
) -> Verification:
    """Runs two models on the same inputs, in onnxruntime where that has the kernels, and compares what they compute.

    Args:
        source: a model as `convert` takes it.
        result: what was made of it. It has to have the same inputs and outputs.
        inputs: values by name, an .npz of them, or a folder of `input_0.pb` or `input_0.npy` as onnx's test data have
            it; else they are made: random ones, and those of the edges.
        input_shapes: shapes of inputs that are to be made.
        seeds: how many random sets of inputs are made.
        report: the report of the conversion, which tells what was promised and which adapter rewrote which node.
        bundle: a folder that does not exist yet, for small models around the first node that differs.

    Raises:
        UsageError: the inputs do not fit the model.
        InvalidModelError: a model or the inputs cannot be read.
    """
    from onnx_convert.verification.run import prepare
    from onnx_convert.verification.run import verify as run
    from onnx_convert.verification.subjects import Subject

    stamps = {domain: report.opsets_before[domain] for domain in report.stamped} if report is not None else None
    with Subject(source, stamps) as before, Subject(result) as after:
        return run(before, after, prepare(before, inputs, input_shapes, seeds), report, bundle)


def diff(before: Model | Conversion, after: Model | Conversion, *, context: int = 3) -> str:
    """Returns how two models differ, as a unified text in ONNX's text form; "" if they do not.

    Each is a model as `convert` takes it, or what `convert` returned, whose weights are those of its source. Of two
    other models the initializers that both have and that differ are named at the end.
    """
    from onnx_convert.reference.difference import Side, unified

    with ExitStack() as stack:
        sides = []
        for model in (before, after):
            if isinstance(model, Conversion):
                report = model.report
                sides.append(Side(report.destination or f"{report.source} (converted)", model.skeleton))
            else:
                source = stack.enter_context(open_source(model, None, incomplete=True))
                sides.append(Side(source.name, source.proto, source))
        return "".join(f"{line}\n" for line in unified(sides[0], sides[1], context))


def convert_version(model: ModelProto, target_version: int) -> ModelProto:
    """Converts as `onnx.version_converter.convert_version` does: to an ai.onnx opset, as a new object."""
    converted: ModelProto = convert(model, to=target_version).model
    return converted
