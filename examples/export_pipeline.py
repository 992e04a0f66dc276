# SPDX-License-Identifier: Apache-2.0
"""The last step of an export: the exporter speaks opset 18, the device stops at opset 12.

Builds a small attention with ONNX Script as an exporter would, converts it with the API, and runs both models in ONNX
Runtime.

python examples/export_pipeline.py
"""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import ModelProto
from onnxscript import FLOAT, script
from onnxscript import opset18 as op

import onnx_convert

BATCH = "N"


@script()
def attention_pooling(tokens: FLOAT[BATCH, 8, 16], query: FLOAT[16]) -> FLOAT[BATCH, 16]:
    """The mean of the tokens, weighted by how well each answers the query."""
    scores = op.MatMul(tokens, op.Unsqueeze(query, op.Constant(value_ints=[1])))
    weights = op.Softmax(scores, axis=1)
    pooled = op.MatMul(op.Transpose(weights, perm=[0, 2, 1]), tokens)
    return op.Squeeze(pooled, op.Constant(value_ints=[1]))


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """The one output of a model in ONNX Runtime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def main() -> None:
    """Exports, converts, compares."""
    exported = attention_pooling.to_model_proto()
    try:
        conversion = onnx_convert.convert(exported, to=12)
    except onnx_convert.RefusedError as error:
        for refusal in error.refusals:  # each names a node, the reason and a remedy
            print(refusal)
        raise

    random = np.random.default_rng(0)
    shapes = {"tokens": (2, 8, 16), "query": (16,)}
    feeds = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    before, after = run(exported, feeds), run(conversion.model, feeds)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)

    report = conversion.report
    print(f"opset {report.opsets_before['ai.onnx']} -> {report.opsets_after['ai.onnx']}, rewrites: {report.form}")
    for step, count in report.steps.items():
        print(f"  {count} x {step.operator}@{step.boundary}: {step.rewrite}")
    print(f"largest difference: {np.abs(after - before).max():.1e}")


if __name__ == "__main__":
    main()
