# SPDX-License-Identifier: Apache-2.0
"""Writes a model as exporters wrote them in 2017: at opset 6, where Add broadcasts along the axis that it names.

python examples/make_legacy_add.py
onnx-convert examples/legacy_add.onnx --to 14
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper


def make() -> ModelProto:
    """A convolution whose bias is added by itself, channel by channel: float32 [N, 3, H, W] to [N, 4, H, W].

    The bias has shape [4] and `axis=1` puts it on the channels. From opset 7 on, a [4] would go to the last axis.
    """
    random = np.random.default_rng(0)
    weights = {
        "filters": random.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "bias": random.normal(size=4).astype(np.float32),
    }
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, "H", "W"])
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in weights.items()]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "filters"], ["features"], name="conv", pads=[1, 1, 1, 1]),
            helper.make_node("Add", ["features", "bias"], ["biased"], name="add_bias", broadcast=1, axis=1),
            helper.make_node("Relu", ["biased"], ["result"], name="relu"),
        ],
        "legacy_add",
        [image, *given],  # IR version 3: every initializer is an input too
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, ["N", 4, "H", "W"])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, ir_version=3, opset_imports=[helper.make_opsetid("", 6)], producer_name="legacy")


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("legacy_add.onnx")
    onnx.save(make(), path)
    print(path)
