# SPDX-License-Identifier: Apache-2.0
"""Compares results: the tolerances by dtype, what counts as equal, and how far apart the rest is.

A float agrees within a tolerance that is relative to it, plus an absolute one that follows the size of the whole
tensor: what rounds in a sum of large numbers rounds as large numbers do. Everything else has to be equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = numpy.ndarray[Any, Any]

TOLERANCE: Final = {
    "float64": 1e-9,
    "float32": 1e-5,
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "complex128": 1e-9,
    "complex64": 1e-5,
}
"""How far apart results of a dtype may be, relatively and absolutely; shorter floats have to be equal."""

EPSILON: Final = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number of a dtype."""

_SMALLEST_SCALE: Final = 1e-5  # of a tensor: what is smaller may be what is left of larger numbers
_SMALLEST_OF_EDGES: Final = 1e-2  # where inputs are tiny or zero, it often is
_ROUNDINGS: Final = 32  # of the largest element, that make no difference between two kernels


class Measured(NamedTuple):
    """How two tensors of the same dtype and shape differ: `differing` of `elements` are not the same bits (NaN apart),
    by at most so much, of which `beyond` are further apart than the tolerance. `first` is the index of the first of
    these."""

    elements: int
    differing: int
    beyond: int
    tolerance: float
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int | None = None
    first: tuple[int, ...] = ()
    expected: str = ""
    got: str = ""


def compare(expected: Sequence[Any], got: Sequence[Any], *, exact: bool = False) -> str | None:
    """Returns None if two lists of results agree, else one sentence that says what differs.

    Dtypes and shapes must match. Floats agree within the tolerance of their dtype (absolute and relative), NaN with
    NaN, infinities with the same; everything else must be equal. `exact` demands equal bits, NaN payloads apart.
    """
    if len(expected) != len(got):
        return f"{len(expected)} results were expected, there are {len(got)}"
    for position, (one, other) in enumerate(zip(expected, got, strict=True)):
        if difference := _difference(one, other, exact):
            return f"result {position}: {difference}"
    return None


def _difference(expected: Any, got: Any, exact: bool) -> str | None:
    if why := unlike(expected, got):
        return why
    if isinstance(expected, list):
        return compare(expected, got, exact=exact)
    if expected is None or isinstance(expected, dict):
        return None
    expected, got = numpy.asarray(expected), numpy.asarray(got)
    same = numpy.asarray(_same_bits(expected, got) if exact else _close(expected, got, 1.0))
    if same.all():
        return None
    first = _first(~same)
    return (
        f"{same.size - int(same.sum())} of {same.size} elements differ, first at {first}: "
        f"{expected[first]} was expected, it is {got[first]}"
    )


def unlike(expected: Any, got: Any) -> str | None:
    """Returns what differs between two results besides numbers: their kind, dtype or shape; None if nothing does."""
    if expected is None or got is None:
        return None if expected is got else "one of the two is absent"
    if isinstance(expected, list) or isinstance(got, list):
        return None if isinstance(expected, list) and isinstance(got, list) else "one of the two is a sequence"
    if isinstance(expected, dict) or isinstance(got, dict):
        return None if expected == got else f"{expected} was expected, it is {got}"
    expected, got = numpy.asarray(expected), numpy.asarray(got)
    if expected.dtype != got.dtype and not {expected.dtype.kind, got.dtype.kind} <= set("OUT"):
        return f"dtype {expected.dtype} was expected, it is {got.dtype}"
    if expected.shape != got.shape:
        return f"shape {expected.shape} was expected, it is {got.shape}"
    return None


def measure(expected: Array, got: Array, *, step: int = 0, edge: bool = False) -> Measured:
    """Returns how two tensors differ that are alike; integers may be apart by `step`. On inputs of the `edge`,
    where the source computes NaN the result may compute anything, and small results are what is left of larger numbers.

    That zeros have the same sign is not demanded: of most operators no text says which it is.
    """
    unequal = ~numpy.asarray(_same_bits(expected, got) | _both_zero(expected, got))
    if edge and is_float(expected.dtype):
        unequal &= ~numpy.isnan(expected)
    if not unequal.any():
        return Measured(expected.size, 0, 0, 0.0, max_ulp=0)
    number = is_float(expected.dtype) or expected.dtype.kind == "c"
    tolerance = TOLERANCE.get(expected.dtype.name, 0.0) if number else 0.0
    scale = max(_scale(expected), _SMALLEST_OF_EDGES if edge else _SMALLEST_SCALE) if number else float(step)
    beyond = unequal & ~numpy.asarray(
        _close(expected, got, scale) if number or step == 0 else _near(expected, got, step)
    )
    first = _first(beyond if beyond.any() else unequal)
    numbers = number or _is_integer(expected.dtype)
    absolute, relative = _distances(expected[unequal], got[unequal]) if numbers else (0.0, 0.0)
    ulp = _ulps(expected[unequal], got[unequal]) if is_float(expected.dtype) else None
    return Measured(
        expected.size,
        int(unequal.sum()),
        int(beyond.sum()),
        tolerance,
        absolute,
        relative,
        ulp,
        first,
        str(expected[first]),
        str(got[first]),
    )


def only_last_bits(expected: Any, got: Any) -> bool:
    """Returns whether two tensors differ by no more than the roundings of a few operations on their largest element."""
    one, other = numpy.asarray(expected), numpy.asarray(got)
    if one.dtype.name not in EPSILON or unlike(one, other) is not None:
        return False
    if not (numpy.isfinite(_wide(one)) == numpy.isfinite(_wide(other))).all():
        return False
    finite = numpy.isfinite(_wide(one))
    apart, size = numpy.abs(_wide(one) - _wide(other))[finite], numpy.abs(_wide(one))[finite]
    return bool(not apart.size or apart.max() <= _ROUNDINGS * EPSILON[one.dtype.name] * size.max())


def is_float(dtype: numpy.dtype[Any]) -> bool:
    """Returns whether it is a float, those included that numpy has through ml_dtypes."""
    return "float" in dtype.name


def _is_integer(dtype: numpy.dtype[Any]) -> bool:
    return "int" in dtype.name


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in numpy.argwhere(wrong)[0])


def _wide(array: Array) -> Array:
    return array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64)


def _scale(expected: Array) -> float:
    """Returns the root of the mean square of what is finite."""
    wide = numpy.abs(_wide(expected))
    finite = wide[numpy.isfinite(wide)]
    return float(numpy.sqrt(numpy.mean(finite**2))) if finite.size else 0.0


def _close(expected: Array, got: Array, scale: float) -> Any:
    if not is_float(expected.dtype) and expected.dtype.kind != "c":
        return expected == got
    tolerance = TOLERANCE.get(expected.dtype.name, 0.0)  # float8 and smaller: equal
    return numpy.isclose(_wide(got), _wide(expected), rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def _near(expected: Array, got: Array, step: int) -> Any:
    return numpy.abs(_wide(got) - _wide(expected)) <= step if _is_integer(expected.dtype) else expected == got


def _same_bits(expected: Array, got: Array) -> Any:
    if expected.dtype.kind == "c" and got.dtype.kind == "c":  # of which one part may be NaN
        return _same_bits(expected.real, got.real) & _same_bits(expected.imag, got.imag)
    if not is_float(expected.dtype):
        return expected == got
    bits = _bits(expected) == _bits(got)
    return bits.reshape(expected.shape) | (numpy.isnan(expected) & numpy.isnan(got))


def _both_zero(expected: Array, got: Array) -> Any:
    return (expected == 0) & (got == 0) if is_float(expected.dtype) else numpy.zeros(expected.shape, bool)


def _bits(array: Array) -> Array:
    return numpy.atleast_1d(numpy.ascontiguousarray(array)).view(f"u{array.dtype.itemsize}")


def _distances(expected: Array, got: Array) -> tuple[float, float]:
    """Returns the largest distance, absolute and relative; infinite where only one of two is finite."""
    one, other = _wide(expected), _wide(got)
    with numpy.errstate(all="ignore"):
        apart = numpy.abs(one - other)
        apart = numpy.where(numpy.isnan(apart), numpy.inf, apart)
        relative = apart / numpy.abs(one)
        relative = numpy.where(numpy.isnan(relative), numpy.inf, relative)
    return float(apart.max()), float(relative.max())


def _ulps(expected: Array, got: Array) -> int | None:
    """Returns how many numbers of the dtype lie between two at most; None if one of a pair is no number."""
    wide = _wide(expected), _wide(got)
    if not (numpy.isfinite(wide[0]).all() and numpy.isfinite(wide[1]).all()):
        return None
    top = 1 << (8 * expected.dtype.itemsize - 1)
    places = []
    for array in (expected, got):
        bits = _bits(array).astype(object) if array.dtype.itemsize == 8 else _bits(array).astype(numpy.int64)
        places.append(numpy.where(bits >= top, top - bits, bits))
    return int(numpy.abs(places[0] - places[1]).max())
