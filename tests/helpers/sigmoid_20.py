# SPDX-License-Identifier: Apache-2.0
"""An invented release of onnx, in which Sigmoid has a new version at opset 20: an attribute `alpha`, 1 by default, is a
factor of the input. It lets you try "Add an operator version" of adapters/README.md, though nothing is new:

    python tests/helpers/sigmoid_20.py onnx_convert --explain Sigmoid@20
    python tests/helpers/sigmoid_20.py pytest tests/adapters/tables/compatible.py

Importing this module registers the version with onnx, and tells the oracle of the tests what it computes. As a program
it goes on with the module that is named, as `python -m` would.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import defs, helper
from onnx.defs import OpSchema

if __name__ == "__main__":  # a program has its own folder on the path, `python -m` the one that it is started in
    sys.path.insert(0, str(Path.cwd()))

from onnx_convert.verification import legacy

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

FLOATS = ["tensor(bfloat16)", "tensor(double)", "tensor(float)", "tensor(float16)"]


def register() -> None:
    """Registers Sigmoid 20 with onnx and with the oracle."""
    schema = OpSchema(
        "Sigmoid",
        "",
        20,
        inputs=[OpSchema.FormalParameter("X", "T")],
        outputs=[OpSchema.FormalParameter("Y", "T")],
        type_constraints=[("T", FLOATS, "")],
        attributes=[OpSchema.Attribute("alpha", helper.make_attribute("alpha", 1.0))],
    )
    schema.set_type_and_shape_inference_function(lambda context: context.set_output_type(0, context.get_input_type(0)))
    defs.register_schema(schema)
    legacy.MEANINGS.append(("Sigmoid", 99, meaning))


def meaning(x: Array, alpha: float = 1.0) -> Array:
    """Computes what the invented version says."""
    result: Array = (1 / (1 + np.exp(-alpha * x))).astype(x.dtype)
    return result


register()

if __name__ == "__main__":
    _, module, *rest = sys.argv
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
