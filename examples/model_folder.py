# SPDX-License-Identifier: Apache-2.0
"""A folder as exporters of language models leave it: several models that share one file of weights.

The models are converted by worker processes, the weights are copied once, and each result is compared with its source.

python examples/model_folder.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

import onnx_convert

WEIGHTS = "model.onnx_data"
MODELS = {  # both look up the same embedding
    "encoder_model.onnx": "h = Gather (table, ids) y = Softmax <axis = 1> (h)",
    "decoder_model.onnx": "h = Gather (table, ids) y = LogSoftmax <axis = 1> (h)",
}


def export(folder: Path) -> None:
    """Writes the models, and their weights beside them."""
    table = numpy_helper.from_array(np.random.default_rng(0).normal(size=(100, 64)).astype(np.float32), "table")
    for name, nodes in MODELS.items():
        text = f'<ir_version: 8, opset_import: ["": 17]> g (int64[N, 4] ids) => (float[N, 4, 64] y) {{ {nodes} }}'
        model = onnx.parser.parse_model(text)
        model.graph.initializer.append(table)
        (folder / WEIGHTS).unlink(missing_ok=True)
        onnx.save(model, folder / name, save_as_external_data=True, location=WEIGHTS)


def main() -> None:
    """Exports, converts, compares."""
    with tempfile.TemporaryDirectory() as folder:
        exported, converted = Path(folder, "exported"), Path(folder, "opset12")
        exported.mkdir()
        export(exported)
        with onnx_convert.convert_many(exported, to=12, output=converted) as batch:
            outcomes = sorted(batch, key=lambda outcome: outcome.name)
        for outcome in outcomes:
            verified = onnx_convert.verify(outcome.source, outcome.destination)
            print(f"{outcome.name}: {outcome.status}, verified: {verified.verdict}")
        print(", ".join(sorted(path.name for path in converted.iterdir() if not path.name.startswith("."))))


if __name__ == "__main__":
    main()
