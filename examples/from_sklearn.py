# SPDX-License-Identifier: Apache-2.0
"""What skl2onnx exports, for a runtime that stops at opset 12. Needs `pip install ".[exports,examples]"`.

python examples/from_sklearn.py
"""

from __future__ import annotations

from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onnx_convert


def main() -> None:
    """Trains, exports, converts, compares."""
    features, labels = load_iris(return_X_y=True)
    features = features.astype("float32")
    trained = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(features, labels)
    exported = to_onnx(trained, features[:1], target_opset={"": 18, "ai.onnx.ml": 3})
    conversion = onnx_convert.convert(exported, to=12)
    report = conversion.report
    for domain, before in report.opsets_before.items():
        print(f"{domain} {before} -> {report.opsets_after[domain]}")
    print(f"verified: {onnx_convert.verify(exported, conversion.model, report=report).verdict}")


if __name__ == "__main__":
    main()
