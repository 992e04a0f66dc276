# SPDX-License-Identifier: Apache-2.0
"""The Cast sandwich: a dtype that the target's operator does not take travels through it in a wider one.

Inputs are cast to the *carrier*, the operator works on that, outputs are cast back. Which carriers are exact depends on
what the operator does to values, its kind (declared by `registry.carried`):

- `movement` only moves elements, `order` only compares them: exact in any dtype that holds every value;
- `arithmetic` is one correctly rounded operation: a wider integer wraps to the same bits when it is cast back, a wider
  float has at least 2p+2 bits of precision and rounds to the same result;
- `extremum` reduces to the largest or smallest element, whose value over no element at all depends on the dtype;
- any other operator that works on floats gives the same up to rounding, one on integers if nothing overflows;
- `none` must not be carried: its outcome depends on the dtype itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import TensorProto

from onnx_convert.report import CONDITIONAL, EQUIVALENT, EXACT
from onnx_convert.types import dtype_name

if TYPE_CHECKING:
    from onnx_convert.legality import Formal

MOVEMENT: Final = "movement"
ORDER: Final = "order"
ARITHMETIC: Final = "arithmetic"
EXTREMUM: Final = "extremum"
NONE: Final = "none"

_T = TensorProto
_INTEGERS: Final = frozenset(
    (_T.BOOL, _T.INT8, _T.INT16, _T.INT32, _T.INT64, _T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64)
)

# Wider dtypes that hold every value, in the order of preference. The second number of a pair says that only integers of
# that many bits are held exactly.
_CARRIERS: Final[dict[int, tuple[int, ...]]] = {
    _T.BOOL: (_T.UINT8, _T.INT32, _T.FLOAT),
    _T.INT8: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.UINT8: (_T.INT32, _T.UINT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.INT16: (_T.INT32, _T.INT64, _T.FLOAT, _T.DOUBLE),
    _T.UINT16: (_T.UINT32, _T.INT64, _T.INT32, _T.FLOAT, _T.DOUBLE),
    _T.INT32: (_T.INT64, _T.DOUBLE),
    _T.UINT32: (_T.UINT64, _T.INT64, _T.DOUBLE),
    _T.INT64: (_T.DOUBLE,),
    _T.UINT64: (_T.DOUBLE,),
    _T.FLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.BFLOAT16: (_T.FLOAT, _T.DOUBLE),
    _T.FLOAT: (_T.DOUBLE,),
}
_SMALL_FLOATS: Final = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1", "FLOAT8E8M0")


class Carrier(NamedTuple):
    """A dtype to carry another one through an operator, and what that promises."""

    dtype: int
    form: str
    condition: str = ""


def carrier(dtype: int, formal: Formal, kind: str, filled: bool | None = None) -> Carrier | None:
    """The best carrier of a dtype that an operator's type variable takes, None if there is none.

    `filled` says whether what the operator looks at has elements, None if that is not known.
    """
    if kind == NONE or (kind == EXTREMUM and dtype in _INTEGERS and filled is False):
        return None
    choices = _CARRIERS.get(dtype, ())
    if not choices and _T.DataType.Name(dtype) in _SMALL_FLOATS:
        choices = (_T.FLOAT,)
    for choice in choices:
        if f"tensor({dtype_name(choice)})" in formal.types:
            if kind in (ARITHMETIC, "") and dtype == _T.UINT16 and choice == _T.INT32:
                continue  # 65535 * 65535 does not fit
            return Carrier(choice, *_promise(dtype, choice, kind, filled))
    return None


def _promise(dtype: int, choice: int, kind: str, filled: bool | None) -> tuple[str, str]:
    whole = dtype in _INTEGERS
    into_float = whole and choice not in _INTEGERS
    if into_float and dtype in (_T.INT64, _T.UINT64):
        return CONDITIONAL, "every integer, results included, is at most 2**53 in magnitude"
    if kind in (MOVEMENT, ORDER):
        return EXACT, ""
    if kind == EXTREMUM:
        if whole and not filled and choice != _T.UINT8:  # of nothing it is the least or greatest of the dtype
            return CONDITIONAL, "no maximum or minimum is taken over an empty axis"
        return EXACT, ""
    if into_float:
        return CONDITIONAL, "no integer result overflows its type"
    if kind == ARITHMETIC:
        return EXACT, ""
    if whole:
        return CONDITIONAL, "no intermediate result overflows the wider type"
    return EQUIVALENT, "computed in a wider float, rounded once"
