# SPDX-License-Identifier: Apache-2.0
"""A conversion between other passes of onnx_ir. Needs `pip install ".[examples]"`."""

from __future__ import annotations

import onnx
import onnx_ir
from onnx_ir.passes import Sequential
from onnx_ir.passes.common import CheckerPass, RemoveUnusedNodesPass

from onnx_convert.ir_passes import ConvertOpsetPass

TEXT = """
<ir_version: 10, opset_import: ["": 21]>
attention (float[2, 3, 4] x) => (float[2, 3, 4] y) {
   unused = Neg (x)
   y = Softmax <axis = 1> (x)
}
"""


def main() -> None:
    """Removes what nobody uses, converts, and checks the result."""
    model = onnx_ir.from_proto(onnx.parser.parse_model(TEXT))
    convert = ConvertOpsetPass(to=12)
    result = Sequential(RemoveUnusedNodesPass(), convert, CheckerPass())(model)
    print(f"opset {result.model.opset_imports['']}: {', '.join(node.op_type for node in result.model.graph)}")
    if report := convert.report:  # of the last model
        print(f"{report.nodes_changed} of {report.nodes_before} nodes changed, {report.form}")


if __name__ == "__main__":
    main()
