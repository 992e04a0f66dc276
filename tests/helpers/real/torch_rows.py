# SPDX-License-Identifier: Apache-2.0
"""Rows of modules for torch to export: small, with random weights, of the architectures that people export.

A row names a module, what it is called with, and the sizes that stay open. `inputs(n)` are arguments of other sizes for
each n, where sizes are open, and of other values in any case.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Arguments = tuple[Tensor, ...]

ONE = ({0: "batch"},)  # the open sizes of a single input whose batch is open


@dataclass(frozen=True)
class Row:
    """A module to export at some opsets.

    `refused` tells up to which opset a target is out of reach, and why; `unable` is what onnxruntime says at opsets at
    which it does not run the model.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[int], Arguments]
    open: tuple[dict[int, str], ...] = ()
    opsets: tuple[int, ...] = (18,)
    refused: Mapping[int, str] = field(default_factory=dict)
    unable: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def calls(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    return lambda: Call(function)


def rand(n: int, *shape: int, scale: float = 1.0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(n)) * scale


def export(row: Row, opset: int, path: Path) -> nn.Module:
    """Writes the file, whatever the exporter warns of and prints, and returns what was exported."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, inputs = row.make().eval(), row.inputs(0)
    options: dict[str, Any] = {"opset_version": opset, **row.options}
    if row.options.get("dynamo", True):
        options |= {"dynamo": True, "verbose": False, "external_data": False}
        options["dynamic_shapes"] = ((row.open,) if isinstance(module, Call) else row.open) if row.open else None
    else:
        names = [f"x{place}" for place in range(len(inputs))]
        options |= {"input_names": names, "dynamic_axes": dict(zip(names, row.open, strict=False))}
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            torch.onnx.export(module, inputs, path, **options)
    finally:
        logging.disable(logging.NOTSET)
    return module


def outputs(module: nn.Module, inputs: Arguments) -> list[Any]:
    """Returns what torch itself computes."""
    with torch.no_grad():
        made = module(*inputs)
    return [value.numpy() for value in (made if isinstance(made, tuple) else (made,))]
