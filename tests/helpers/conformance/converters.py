# SPDX-License-Identifier: Apache-2.0
"""What is put to the test: this project, or onnx's own version converter for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import onnx
import onnx.version_converter
from onnx import ModelProto

import onnx_convert
from oracle import opset_of


class Refused(Exception):
    """The converter declines. Each refusal has operator, boundary (0: unknown) and reason."""

    def __init__(self, refusals: list[dict[str, Any]]) -> None:
        self.refusals = refusals
        super().__init__(refusals[0]["reason"])


@dataclass
class Converted:
    """A converted model, the weakest promise among its rewrites, and their names."""

    model: ModelProto
    form: str = ""
    rewrites: list[str] = field(default_factory=list)


class Converter(Protocol):
    """Carries the given domain of a model to a target opset. Raises Refused; whatever else it raises is a crash."""

    def __call__(self, model: ModelProto, domain: str, target: int) -> Converted: ...


def ours(model: ModelProto, domain: str, target: int, options: Mapping[str, Any]) -> Converted:
    """This project's converter, with options of `convert`."""
    try:
        conversion = onnx_convert.convert(model, to={domain or "ai.onnx": target}, **options)
    except onnx_convert.RefusedError as error:
        raise Refused(
            [{"operator": r.operator, "boundary": r.boundary, "reason": r.reason} for r in error.refusals]
        ) from error
    report = conversion.report
    return Converted(conversion.model, report.form, sorted({step.rewrite for step in report.steps}))


def theirs(model: ModelProto, domain: str, target: int, options: Mapping[str, Any]) -> Converted:
    """Onnx's converter. All of its exceptions are refusals, since it has no other way to decline.

    It leaves the IR version to the caller, so that is raised here to what the target needs.
    """
    if domain:
        raise Refused([{"operator": "", "boundary": 0, "reason": f"it does not convert {domain}"}])
    try:
        converted = onnx.version_converter.convert_version(model, target)
    except Exception as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise Refused([{"operator": "", "boundary": 0, "reason": reason}]) from error
    needed = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset_of(converted))])
    converted.ir_version = max(converted.ir_version, needed)
    return Converted(converted)


CONVERTERS = {"onnx-convert": ours, "onnx": theirs}
