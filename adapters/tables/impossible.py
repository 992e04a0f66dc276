# SPDX-License-Identifier: Apache-2.0
"""Operators that nothing below can replace: what works on strings, and what decodes images."""

from __future__ import annotations

from typing import Final

from onnx_convert.adapter import impossible

_BEFORE: Final = "do this before the model, and feed it the outcome, or go no lower than opset "

impossible(
    "StringNormalizer",
    at=10,
    direction="down",
    reason="no operator below opset 10 changes strings",
    remedy=f"{_BEFORE}10",
)
impossible(
    *("RegexFullMatch", "StringConcat", "StringSplit"),
    at=20,
    direction="down",
    reason="no operator below opset 20 looks into strings or puts them together",
    remedy=f"{_BEFORE}20",
)
impossible(
    "ImageDecoder",
    at=20,
    direction="down",
    reason="no operator below opset 20 decodes images",
    remedy=f"{_BEFORE}20",
)
