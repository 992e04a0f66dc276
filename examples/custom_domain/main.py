# SPDX-License-Identifier: Apache-2.0
"""Moves a model of com.acme from version 2 of that domain to version 1, and back.

python examples/custom_domain/main.py

Here the adapters register themselves by an import. `pip install ./examples/custom_domain` makes them known to every
conversion and to the command line: `onnx-convert model.onnx --to com.acme:1`.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper

import acme_adapters  # noqa: F401
import onnx_convert


def make(*alphas: float) -> ModelProto:
    """A chain of gates: float32 [N] to [N]."""
    nodes = [
        helper.make_node("Gate", [f"x{i}"], [f"x{i + 1}"], domain="com.acme", name=f"gate_{i}", alpha=alpha)
        for i, alpha in enumerate(alphas)
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in ("x0", f"x{len(alphas)}")]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 2)]
    return helper.make_model(helper.make_graph(nodes, "gates", ends[:1], ends[1:]), ir_version=8, opset_imports=imports)


def operators(model: ModelProto) -> list[str]:
    """The operators of a model in order, with their domains."""
    return [f"{node.domain}.{node.op_type}".lstrip(".") for node in model.graph.node]


def main() -> None:
    """Down, and up again; then the decomposition in a runtime that has never heard of com.acme."""
    older = onnx_convert.convert(make(1.0, 1.702), to={"com.acme": 1}).model
    print("version 1:", *operators(older))
    newer = onnx_convert.convert(older, to={"com.acme": 2}).model
    print("version 2:", *operators(newer), "- alpha is", newer.graph.node[0].attribute[0].f)

    steep = onnx_convert.convert(make(1.702), to={"com.acme": 1}).model
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    session = onnxruntime.InferenceSession(steep.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x0": x})[0], x / (1 + np.exp(-1.702 * x)), rtol=1e-5)
    print("the decomposition computes the same")


if __name__ == "__main__":
    main()
