# SPDX-License-Identifier: Apache-2.0
"""A conversion as a step of an optimiser that is driven by a configuration, in the manner of Olive's passes: each has a
default configuration, and makes of a model and a configuration another model.

The methods have the names and the parameters that Olive's have; to register it there, derive it from Olive's `Pass`
and hand on an `ONNXModelHandler` in place of a path. It runs without that package:

python examples/olive_pass.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import onnx
from make_legacy_add import make

import onnx_convert

CONFIG = {"passes": {"opset": {"type": "OpsetConversion", "target_opset": 14}}}


class OpsetConversion:
    """A pass: to another opset, or to what a runtime loads."""

    def __init__(self, config: dict[str, Any]) -> None:
        unknown = config.keys() - self._default_config(None).keys()
        if unknown:
            raise ValueError(f"OpsetConversion has no parameter {', '.join(sorted(unknown))}")
        self.config = {**self._default_config(None), **config}

    @classmethod
    def _default_config(cls, accelerator_spec: object) -> dict[str, Any]:  # noqa: ARG003 - Olive's
        return {"target_opset": None, "runtime": None, "verify": True}

    def _run_for_config(self, model: str, config: dict[str, Any], output_model_path: str) -> str:
        """Returns the path of the new model. An error of onnx_convert says which nodes stand in the way."""
        with onnx_convert.convert(model, to=config["target_opset"], runtime=config["runtime"]) as conversion:
            report = conversion.save(output_model_path)
        if config["verify"]:
            verified = onnx_convert.verify(model, output_model_path, report=report)
            if not verified.same:
                raise ValueError(f"{model}: the result is not known to compute the same: {verified.reason}")
        return output_model_path

    def run(self, model: str, output_model_path: str) -> str:
        """Runs the pass with its own configuration."""
        return self._run_for_config(model, self.config, output_model_path)


PASSES = {"OpsetConversion": OpsetConversion}


def main() -> None:
    """Runs the passes of a configuration, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "source.onnx"))
        onnx.save(make(), model)
        for name, settings in CONFIG["passes"].items():
            kind = PASSES[settings["type"]]
            config = {key: value for key, value in settings.items() if key != "type"}
            model = kind(config).run(model, str(Path(folder, f"{name}.onnx")))
            print(f"{name}: opset {onnx.load(model).opset_import[0].version}")


if __name__ == "__main__":
    main()
