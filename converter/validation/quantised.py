# SPDX-License-Identifier: Apache-2.0
"""Checks scales and zero points of operators that compute with quantised numbers: one for a tensor, or one for each of
its rows, columns or channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from onnx_convert.validation.pairs import differ, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx_convert.validation.uses import Use

    Rule = Callable[[Use], str]

_ONE: Final = ((), (1,))


def _pair(scale: int, zero: int) -> Rule:
    """Returns a rule that a scale and a zero point have one shape."""

    def rule(use: Use) -> str:
        a, b = use.dims(scale), use.dims(zero)
        if a is None or b is None or (a in _ONE and b in _ONE):
            return ""
        if len(a) != len(b) or any(map(differ, a, b)):
            return f"inputs {scale} and {zero} differ in shape: {shown(a)} and {shown(b)}"
        return ""

    return rule


def _one(*indices: int) -> Rule:
    """Returns a rule that inputs are for the whole tensor."""

    def rule(use: Use) -> str:
        for index in indices:
            dims = use.dims(index)
            if dims is not None and (len(dims) > 1 or any(differ(size, 1) for size in dims)):
                return f"input {index} is not a single number"
        return ""

    return rule


def _along(tensor: int, axis: int, *indices: int) -> Rule:
    """Returns a rule that inputs are for a whole tensor, or are a vector with an entry for each place of its axis, or
    have its rank and size 1 in the axis that it is multiplied along."""

    def rule(use: Use) -> str:
        dims = use.dims(tensor)
        for index in indices:
            own = use.dims(index)
            if dims is None or own is None or own in _ONE:
                continue
            wanted = dims[axis] if -len(dims) <= axis < len(dims) else None
            if len(own) == 1 and differ(own[0], 1) and differ(own[0], wanted):
                return f"input {index} has {own[0]} elements for {wanted}"
            if len(own) > 1 and len(own) != len(dims):
                return f"input {index} has the shape {shown(own)}, for a tensor of shape {shown(dims)}"
            if len(own) > 1 and any(size != 1 and differ(size, wide) for size, wide in zip(own, dims, strict=True)):
                return f"input {index} has the shape {shown(own)}, for a tensor of shape {shown(dims)}"
        return ""

    return rule


BY_OPERATOR: Final[tuple[tuple[str, tuple[Rule, ...]], ...]] = (
    ("QLinearMatMul", (_pair(1, 2), _pair(4, 5), _pair(6, 7), _along(0, -2, 1, 2), _along(3, -1, 4, 5))),
    ("QLinearConv", (_one(1, 2, 6, 7), _along(3, 0, 4, 5, 8))),
    ("MatMulInteger", (_along(0, -2, 2), _along(1, -1, 3))),
    ("ConvInteger", (_one(2), _along(1, 0, 3))),
)
"""Rules by operators."""
