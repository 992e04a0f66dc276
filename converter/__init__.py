# SPDX-License-Identifier: Apache-2.0
"""Moves an ONNX model from one opset to another, up or down, without changing what it computes.

    >>> import onnx_convert
    >>> onnx_convert.convert("model.onnx", to=14).save("model.opset14.onnx")

Everything here is imported when it is first used, so that the import of this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx_convert.api import convert, convert_version, diff, inspect, plan, verify
    from onnx_convert.batch.job import Outcome
    from onnx_convert.batch.run import Batch, convert_many
    from onnx_convert.conversion import Conversion
    from onnx_convert.errors import InternalError, InvalidModelError, OnnxConvertError, RefusedError, UsageError
    from onnx_convert.reference.model_summary import Description
    from onnx_convert.report import Change, Refusal, Report, Step
    from onnx_convert.rewrite.emitter import Emitter
    from onnx_convert.rewrite.node import Node, Value
    from onnx_convert.rewrite.registry import compatible, downgrade, impossible, upgrade
    from onnx_convert.verification.outcome import Verification

    __version__: str

_HOMES = {
    "api": ("convert", "convert_version", "diff", "inspect", "plan", "verify"),
    "batch.job": ("Outcome",),
    "batch.run": ("Batch", "convert_many"),
    "conversion": ("Conversion",),
    "errors": ("InternalError", "InvalidModelError", "OnnxConvertError", "RefusedError", "UsageError"),
    "reference.model_summary": ("Description",),
    "report": ("Change", "Refusal", "Report", "Step"),
    "rewrite.emitter": ("Emitter",),
    "rewrite.node": ("Node", "Value"),
    "rewrite.registry": ("compatible", "downgrade", "impossible", "upgrade"),
    "verification.outcome": ("Verification",),
}

__all__ = [
    "Batch",
    "Change",
    "Conversion",
    "Description",
    "Emitter",
    "InternalError",
    "InvalidModelError",
    "Node",
    "OnnxConvertError",
    "Outcome",
    "Refusal",
    "RefusedError",
    "Report",
    "Step",
    "UsageError",
    "Value",
    "Verification",
    "compatible",
    "convert",
    "convert_many",
    "convert_version",
    "diff",
    "downgrade",
    "impossible",
    "inspect",
    "plan",
    "upgrade",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("onnx-convert")
    for module, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
