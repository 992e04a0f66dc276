# SPDX-License-Identifier: Apache-2.0
"""What torch exports, for a device that stops at opset 12. Needs `pip install ".[exports,examples]"`.

python examples/from_torch.py
"""

from __future__ import annotations

import torch

import onnx_convert


class Head(torch.nn.Module):
    """A head of a transformer: attention over the tokens, normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(16, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns the tokens, each with a share of the others."""
        scores = torch.softmax(tokens @ self.project(tokens).transpose(1, 2), dim=1)
        return self.norm(tokens + scores @ tokens)


def main() -> None:
    """Exports, converts, compares."""
    program = torch.onnx.export(Head().eval(), (torch.randn(2, 8, 16),), dynamo=True, opset_version=18, verbose=False)
    conversion = onnx_convert.convert(program, to=12)
    report = conversion.report
    print(f"opset {report.opsets_before['ai.onnx']} -> {report.opsets_after['ai.onnx']}, rewrites: {report.form}")
    verified = onnx_convert.verify(program, conversion.model, report=report)
    print(f"verified: {verified.verdict}")


if __name__ == "__main__":
    main()
