# SPDX-License-Identifier: Apache-2.0
"""The conversion as a pass of `onnx_ir`, which composes with others in a `Sequential`. Needs the extra `script`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_ir.passes import InPlacePass, PassResult

from onnx_convert import api

if TYPE_CHECKING:
    import onnx_ir

    from onnx_convert.report import Report
    from onnx_convert.target.request import Opsets


class ConvertOpsetPass(InPlacePass):
    """Converts an `onnx_ir.Model` to another opset, with the arguments of `onnx_convert.convert`.

    `report` is that of the last model. What the pass raises, `onnx_ir` wraps into its own PassError; the cause is the
    error of `convert`, and the model is as it was.
    """

    def __init__(self, to: Opsets | None = None, **options: Any) -> None:
        super().__init__()
        self._to = to
        self._options = options
        self.report: Report | None = None

    def call(self, model: onnx_ir.Model) -> PassResult:
        """Replaces the content of the model by that of the converted one."""
        conversion = api.convert(model, self._to, **self._options)
        self.report = conversion.report
        if not conversion.changed:
            return PassResult(model, modified=False)
        result = conversion.model
        model.graph = result.graph
        model.ir_version = result.ir_version
        model.functions.clear()
        model.functions.update(result.functions)
        return PassResult(model, modified=True)
