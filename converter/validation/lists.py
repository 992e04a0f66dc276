# SPDX-License-Identifier: Apache-2.0
"""Checks the inputs that steer an operator: lists of axes, sizes and places, of rank 1, and single numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.validation.pairs import ranks, single

if TYPE_CHECKING:
    from onnx_convert.validation.pairs import Rule
    from onnx_convert.validation.uses import Use

_REDUCTIONS: Final = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd"

_AXES: Final = f"{_REDUCTIONS} ReduceSum ReduceSumSquare Squeeze Unsqueeze"

_LISTS: Final = """
Reshape Expand Split AffineGrid Compress CenterCropPad ReverseSequence: 1
ConstantOfShape: 0
Col2Im: 1 2
Upsample: 1
Resize: 1 2 3
Pad: 3
MaxUnpool: 2
TensorScatter: 2
MaxRoiPool RoiAlign: 2
"""

_SINGLE: Final = """
HannWindow HammingWindow BlackmanWindow: 0
OneHot CumSum CumProd Trilu: 1
TopK: 1
Range: 0 1 2
MelWeightMatrix: 0 1 2 3 4
DFT: 1 2
STFT: 1 3
SequenceAt SequenceErase: 1
SequenceInsert: 2
NonMaxSuppression: 2 3 4
Dropout Clip: 1 2
"""


def _axes(use: Use) -> str:
    """Returns what is wrong with the rank of axes. A constant number stands for a list of one: every runtime takes it,
    and onnx's own test data, made of the bodies of its functions, have it."""
    return "" if use.dims(1) == () and use.elements(1) is not None else ranks(1, 1)(use)


def _by_operator() -> list[tuple[str, tuple[Rule, ...]]]:
    found: list[tuple[str, tuple[Rule, ...]]] = [(_AXES, (_axes,))]
    for line in _LISTS.strip().splitlines():
        operators, indices = line.split(":")
        found.append((operators, tuple(ranks(int(index), 1) for index in indices.split())))
    for line in _SINGLE.strip().splitlines():
        operators, indices = line.split(":")
        found.append((operators, tuple(single(int(index)) for index in indices.split())))
    return found


BY_OPERATOR: Final = _by_operator()
"""Rules by operators."""
