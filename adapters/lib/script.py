# SPDX-License-Identifier: Apache-2.0
"""Replacements whose mathematics is written in ONNX Script, as FunctionProtos for `op.call`.

The sources lie in `decompose/scripts/`, one file a family, and beside each what it compiles to, as ONNX text: a
conversion reads that, and only if it needs one of the functions, so that it never imports onnxscript.
`python tests/helpers/compile_scripts.py` compiles anew.
"""

from __future__ import annotations

from functools import cached_property
from importlib import resources
from typing import Final

from onnx import FunctionProto, parser  # noqa: TID251  (the text is ONNX's own)

Function = FunctionProto

_FORMULAS: Final = "onnx_convert.adapters.decompose"


class Compiled:
    """The functions of a family by name: `Compiled("activations").gelu` is a FunctionProto."""

    def __init__(self, family: str) -> None:
        self.family = family

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Every function of the family."""
        text = resources.files(_FORMULAS).joinpath("scripts", f"{self.family}.onnxtxt").read_text(encoding="utf-8")
        return {function.name: function for function in parser.parse_model(text).functions}

    def __getattr__(self, name: str) -> Function:
        try:
            return self.functions[name]
        except KeyError:
            raise AttributeError(name) from None
