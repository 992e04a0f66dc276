# SPDX-License-Identifier: Apache-2.0
"""Checks what Scan is given beside its body: an entry for each thing that is scanned or stacked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.validation.pairs import differ, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.validation.uses import Use

    Rule = Callable[[Use], str]

_DIRECTIONS: Final = (0, 1)


def scan(use: Use) -> str:
    """Returns what is wrong with the lists of Scan, and below 9 with the lengths of its sequences."""
    scanned, batched = use.given.get("num_scan_inputs"), use.opset < 9
    if not isinstance(scanned, int):
        return ""
    states = len(use.inputs) - scanned - batched
    if scanned < 1 or states < 0:
        return f"num_scan_inputs is {scanned}, and there are {len(use.inputs)} inputs"
    stacked = use.outputs - states
    for name, count in (
        ("directions", scanned),
        ("scan_input_directions", scanned),
        ("scan_output_directions", stacked),
        ("scan_input_axes", scanned),
        ("scan_output_axes", stacked),
    ):
        given = use.given.get(name)
        if not isinstance(given, list):
            continue
        wrong_count = len(given) < count if "output" in name else len(given) != count  # an output may be left out
        if wrong_count:
            return f"{name} has {len(given)} entries, not {count}"
        if name.endswith("directions") and (wrong := [one for one in given if one not in _DIRECTIONS]):
            return f"{name} has {wrong[0]}, which is neither 0 nor 1"
    return _lengths(use) if batched else ""


def _lengths(use: Use) -> str:
    lengths = use.dims(0)
    if lengths is None:
        return ""
    batch = next((dims[0] for index in range(1, len(use.inputs)) if (dims := use.dims(index))), None)
    wrong = len(lengths) != 1 or differ(lengths[0], batch)
    return f"sequence_lens has the shape {shown(lengths)}, not {shown([batch])}" if wrong else ""


BY_OPERATOR: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (("Scan", (scan,)),)
"""Rules by operators."""
