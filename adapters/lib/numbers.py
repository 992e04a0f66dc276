# SPDX-License-Identifier: Apache-2.0
"""Numbers that are known now or computed when the model runs, in one notation.

    numbers = Numbers(op)
    size = numbers.size(x, axis)
    first = (start + size * start.is_negative()).at_most(size).at_least(0)

What is known is computed here; for the rest nodes are written, each of them once. A `Number` may stand for many: arrays
take part in arithmetic as in numpy, and a single number is a vector of one element.

`Numbers(op)` makes whole numbers: sizes, axes, bounds, counts. Known ones have no limit; where they are written, those
beyond int64 become its nearest end. Computed ones are int64 until they are compared: older opsets know no Max, Min and
Less of integers, so from there on they are double, which is exact up to 2**53 and thus for all that counts elements.
`Numbers(op, FLOAT)` makes reals of that dtype: coordinates, scales.

Each whole number knows bounds that it never leaves (no size is negative), so that a clamp which never bites costs no
node. Nodes are written for the opsets that suit them (`op.at`), so not in bodies (`op.graph`), which have one opset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy

from onnx_convert.adapter import Value
from onnx_convert.adapters.lib.dtypes import DOUBLE, FLOAT, INT64
from onnx_convert.adapters.lib.shapes import END, count_in_row, known_size, part, product, size_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from onnx_convert.adapter import Emitter

    Array = numpy.ndarray[Any, Any]
    Fold: TypeAlias = Callable[[Array, Array], Array]
    Numeric: TypeAlias = "int | float | Sequence[float] | Array | Value | Number"

_LEAST, _MOST = -(2**63), 2**63 - 1
_EXACT: Final = 2**53  # up to which doubles have all whole numbers
_HELD: Final[dict[int, Any]] = {INT64: object, FLOAT: numpy.float32, DOUBLE: numpy.float64}  # object: ints of Python
# The opsets that nodes are written for; the others: 7.
_OPSETS: Final = {**dict.fromkeys(("Abs", "Ceil", "Exp", "Floor", "Log", "Relu"), 6), "Max": 8, "Min": 8}


class Numbers:
    """Makes the numbers of one rewrite: whole ones, or reals of a dtype."""

    def __init__(self, op: Emitter, dtype: int = INT64, written: dict[tuple[object, ...], Value] | None = None) -> None:
        self.op = op
        self.dtype = dtype
        self.compared: Final = DOUBLE if dtype == INT64 else dtype
        self._written = {} if written is None else written

    def to(self, dtype: int) -> Numbers:
        """Returns what makes numbers of another dtype, and writes no node again."""
        return Numbers(self.op, dtype, self._written)

    def of(self, number: Numeric, low: float = -inf, high: float = inf) -> Number:
        """Returns the Number for a number, an array, or a value; it is known if that is a constant.

        `low` and `high` are what a value that is computed never goes below and above.
        """
        if isinstance(number, Number):
            if number.numbers is self:
                return number
            if number.computed is None:
                return self._known(number.known)
            number = number.computed
        if not isinstance(number, Value):
            return self._known(number)
        if number.constant is not None:
            return self._known(number.constant)
        return self.computed(number, low, high)

    def computed(self, value: Value, low: float = -inf, high: float = inf, *, single: bool = False) -> Number:
        """Returns the Number for a value that is left to the run, even if it is a constant."""
        single = single or value.shape in ((), (1,))
        return Number(self, None, self.cast(value, self.dtype), self.dtype, low, high, single)

    def one(self, value: Value, low: float = -inf, high: float = inf) -> Number:
        """Returns the Number for a scalar, or a vector of one element."""
        if value.constant is None and value.rank != 1:
            value = self.op.at(5).Reshape(value, self.op.const([1]))
        return self.of(value, low, high)

    def size(self, x: Value, axis: int) -> Number:
        """Returns the size of a value along an axis; a negative one counts from the end."""
        known = known_size(x, axis)
        if known is not None:
            return self._known(known)
        axis = axis if x.rank is None else axis % x.rank
        size = self.once(lambda: size_at(self.op, self.shape(x), axis), "size", x.name, axis)
        return self.computed(size, 0, END, single=True)

    def sizes(self, x: Value, axes: Sequence[int] | None = None) -> Number:
        """Returns the sizes of a value along these axes, or along all."""
        shape = x.shape
        if shape is not None:
            axes = [axis % len(shape) for axis in axes] if axes is not None else range(len(shape))
            known = [size for axis in axes if isinstance(size := shape[axis], int)]
            if len(known) == len(axes):
                return self._known(known)
        if axes is None or (shape is not None and list(axes) == list(range(len(shape)))):
            return self.computed(self.shape(x), 0, END)
        names = self.op.const(axes)
        return self.computed(self.node("Gather", self.shape(x), names), 0, END)

    def rank(self, x: Value) -> Number:
        """Returns how many axes a value has."""
        if x.rank is not None:
            return self._known(x.rank)
        return self.computed(self.once(lambda: self.op.Shape(self.shape(x)), "rank", x.name), 0, END, single=True)

    def shape(self, x: Value) -> Value:
        """Writes a Shape."""
        return self.once(lambda: self.op.Shape(x), "Shape", x.name)

    def up_to(self, count: Number | int) -> Number:
        """Returns the vector 0, 1, 2 ..., of so many elements."""
        return self.row(count).squeezed(0)

    def row(self, count: Number | int) -> Number:
        """Returns the matrix [[0, 1, 2 ...]], of so many columns."""
        count = count if isinstance(count, Number) else self.of(count)
        if count.number is not None:
            self.op.subject.limit(int(count.number))
            return self._known(numpy.arange(int(count.number))[None])
        length = count.in_dtype(INT64)
        return self.of(self.once(lambda: count_in_row(self.op, length), "row", length.name), 0, END)

    def vector(self, parts: Iterable[Numeric]) -> Value:
        """Writes numbers one after the other into one vector: a constant if all of them are known, else a Concat."""
        pieces: list[Number] = []
        for piece in map(self.of, parts):
            if pieces and piece.known is not None and (before := pieces[-1].known) is not None:
                pieces[-1] = self._known(numpy.concatenate([before, piece.known]))
            else:
                pieces.append(piece)
        values = [piece.value for piece in pieces or [self._known([])]]
        return values[0] if len(values) == 1 else self.op.at(4).Concat(*values, axis=0)

    def target(self, parts: Iterable[Numeric]) -> Value:
        """Writes a shape to give to Reshape: like `vector`, or as a constant with a -1 for one size that is not known.

        With a -1 nothing else may be 0, so that takes known sizes for all others.
        """
        pieces = [self.of(piece) for piece in parts]
        known = [size for piece in pieces if piece.known is not None for size in piece.known.tolist()]
        if 0 not in known and len([piece for piece in pieces if piece.known is None]) == 1:
            pieces = [self._known(-1) if piece.known is None and piece.single else piece for piece in pieces]
        return self.vector(pieces)

    def once(self, write: Callable[[], Value], *key: object) -> Value:
        """Returns what `write` writes, which happens once for each key."""
        if key not in self._written:
            self._written[key] = write()
        return self._written[key]

    def cast(self, value: Value, dtype: int) -> Value:
        """Writes a Cast; returns the value itself where it is known to have the dtype."""
        return value if value.dtype == dtype else self.node("Cast", value, to=dtype)

    def node(self, operator: str, *inputs: Value, **attributes: int) -> Value:
        """Writes a node of arithmetic."""
        write = getattr(self.op.at(_OPSETS.get(operator, 7)), operator)
        key = (*(value.name for value in inputs), *attributes.values())
        return self.once(lambda: write(*inputs, **attributes), operator, *key)

    def _known(self, known: Any) -> Number:
        array = numpy.asarray(known)
        if self.dtype == INT64 and array.dtype.kind == "f" and array.size:
            array = array.astype(numpy.int64)
        array = numpy.atleast_1d(array.astype(_HELD[self.dtype]))
        low, high = (array.min(), array.max()) if array.size else (-inf, inf)
        return Number(self, array, None, self.dtype, low, high, array.shape == (1,))


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number, or an array of them: known, or computed in `dtype`. It is `single` if it is a vector of one element."""

    numbers: Numbers
    known: Array | None
    computed: Value | None
    dtype: int
    low: float
    high: float
    single: bool

    @property
    def number(self) -> Any:
        """The int or float that this is known to be; None if it is not known, or not one."""
        return self.known.item() if self.known is not None and self.single else None

    @property
    def value(self) -> Value:
        """The value to give to a node: int64 if the number is whole."""
        return self.in_dtype(self.numbers.dtype)

    def whole(self) -> Number:
        """Returns the number as int64 again, after it was compared."""
        dtype = self.numbers.dtype
        return self if self.dtype == dtype else replace(self, computed=self.value, dtype=dtype)

    def in_dtype(self, dtype: int) -> Value:
        """Returns the value in another dtype."""
        if self.computed is not None:
            return self.numbers.cast(self.computed, dtype)
        within = [_LEAST, _MOST] if dtype == INT64 else [-inf, inf]
        return self.numbers.op.const(numpy.clip(numpy.asarray(self.known), *within), dtype)

    # ---- sums and products

    def __add__(self, other: Numeric) -> Number:
        other = self.numbers.of(other)
        if self.number == 0 or other.number == 0:
            return other if self.number == 0 else self
        return self._with(other, "Add", numpy.add, (self.low + other.low, self.high + other.high))

    def __sub__(self, other: Numeric) -> Number:
        other = self.numbers.of(other)
        if other.number == 0:
            return self
        return self._with(other, "Sub", numpy.subtract, (self.low - other.high, self.high - other.low))

    def __mul__(self, other: Numeric) -> Number:
        other = self.numbers.of(other)
        for one, another in ((self, other), (other, self)):
            if one.number == 1 or (one.number == 0 and another.single):
                return another if one.number == 1 else one
        ends = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return self._with(other, "Mul", numpy.multiply, (min(ends), max(ends)))

    def __neg__(self) -> Number:
        return 0 - self

    def __radd__(self, other: Numeric) -> Number:
        return self.numbers.of(other) + self

    def __rsub__(self, other: Numeric) -> Number:
        return self.numbers.of(other) - self

    def __rmul__(self, other: Numeric) -> Number:
        return self.numbers.of(other) * self

    def _with(self, other: Number, operator: str, fold: Fold, bounds: tuple[float, float]) -> Number:
        """Combines two numbers: folds what is known, writes a node otherwise."""
        numbers = self.numbers
        if self.known is not None and other.known is not None:
            with numpy.errstate(all="ignore"):  # no number at conversion where there is none at run time
                return numbers.of(fold(self.known, other.known))
        dtype = numbers.compared if self.dtype != other.dtype else self.dtype
        value = numbers.node(operator, self.in_dtype(dtype), other.in_dtype(dtype))
        low, high = bounds if numbers.dtype == INT64 else (-inf, inf)  # a real may be rounded beyond them
        return Number(numbers, None, value, dtype, low, high, self.single and other.single)

    # ---- quotients

    def __truediv__(self, other: Numeric) -> Number:
        """Divides reals."""
        other = self.numbers.of(other)
        return self if other.number == 1 else self._with(other, "Div", numpy.divide, (-inf, inf))

    def __rtruediv__(self, other: Numeric) -> Number:
        return self.numbers.of(other) / self

    def __floordiv__(self, other: Numeric) -> Number:
        """Divides whole numbers and rounds down."""
        other = self.numbers.of(other)
        return self if other.number == 1 else self._divided(other, "Floor", _floor_divided)

    def __mod__(self, other: Numeric) -> Number:
        """Returns what is left over after rounding down; it has the sign of the divisor."""
        return self - self // other * other

    def divided_up(self, other: Numeric) -> Number:
        """Divides whole numbers and rounds up: returns how many parts of a size hold so many elements."""
        other = self.numbers.of(other)
        if other.number == 1:
            return self
        if self.dtype == INT64 and self.low >= 0 and other.low > 0:
            return (self + (other - 1)) // other
        return self._divided(other, "Ceil", lambda a, b: -_floor_divided(-a, b))

    def _divided(self, other: Number, rounding: str, fold: Callable[[Array, Array], Array]) -> Number:
        numbers, positive = self.numbers, self.low >= 0 and other.low >= 0
        bounds = (0.0, self.high) if positive else (-inf, inf)
        if (self.known is not None and other.known is not None) or (positive and INT64 == self.dtype == other.dtype):
            return self._with(other, "Div", fold, bounds)  # of integers, which cuts off
        value = numbers.node(rounding, numbers.node("Div", self.in_dtype(DOUBLE), other.in_dtype(DOUBLE)))
        return Number(numbers, None, value, DOUBLE, bounds[0], bounds[1], self.single and other.single)

    # ---- comparisons

    def at_least(self, bound: Numeric) -> Number:
        """Returns the larger of two numbers."""
        bound = self.numbers.of(bound)
        if self.low >= bound.high and bound.single:
            return self
        if bound.low >= self.high and self.single:
            return bound
        return self._nearer(bound, "Max", numpy.maximum, (max(self.low, bound.low), max(self.high, bound.high)))

    def at_most(self, bound: Numeric) -> Number:
        """Returns the smaller of two numbers."""
        bound = self.numbers.of(bound)
        if self.high <= bound.low and bound.single:
            return self
        if bound.high <= self.low and self.single:
            return bound
        return self._nearer(bound, "Min", numpy.minimum, (min(self.low, bound.low), min(self.high, bound.high)))

    def _nearer(self, bound: Number, operator: str, fold: Fold, bounds: tuple[float, float]) -> Number:
        """Returns the larger or smaller of two numbers. Runtimes know no Max and Min of doubles below opset 8, but
        Relu: of how far one is beyond the other, which is exact where the numbers are whole."""
        numbers, zero = self.numbers, bound.number == 0 and operator == "Max"
        known = self.known is not None and (bound.known is not None or numbers.dtype != INT64)
        if known or numbers.compared != DOUBLE or not (zero or numbers.dtype == INT64):
            return self._with(bound, operator, fold, bounds)
        far = bound.known is not None and any(abs(number) > _EXACT for number in bound.known.flat)
        pair = (self, bound) if far else (bound, self)  # the first may not be rounded
        first, second = (number.in_dtype(DOUBLE) for number in pair)
        back, beyond = ("Add", (second, first)) if operator == "Max" else ("Sub", (first, second))
        value = numbers.node("Relu", second if zero else numbers.node("Sub", *beyond))
        value = value if zero else numbers.node(back, first, value)
        return Number(numbers, None, value, DOUBLE, *bounds, self.single and bound.single)

    def is_negative(self) -> Number:
        """Returns 1 where it is below 0, else 0."""
        numbers = self.numbers
        if self.known is not None:
            return numbers.of(self.known < 0)
        if self.low >= 0 and self.single:
            return numbers.of(0)
        dtype = numbers.compared
        below = numbers.node("Less", self.in_dtype(dtype), numbers.op.const([0], dtype))
        return Number(numbers, None, numbers.cast(below, dtype), dtype, 0, 1, self.single)

    # ---- functions of one number

    def abs(self) -> Number:
        """Returns how far it is from 0."""
        return self if self.low >= 0 else self._each("Abs", numpy.abs)

    def floor(self) -> Number:
        """Rounds reals down."""
        return self._each("Floor", numpy.floor)

    def ceil(self) -> Number:
        """Rounds reals up."""
        return self._each("Ceil", numpy.ceil)

    def exp(self) -> Number:
        """Returns e to the power of reals."""
        return self._each("Exp", numpy.exp)

    def log(self) -> Number:
        """Returns the natural logarithm of reals."""
        return self._each("Log", numpy.log)

    def cos(self) -> Number:
        """Returns the cosine of angles, reals."""
        return self._each("Cos", numpy.cos)

    def sin(self) -> Number:
        """Returns the sine of angles, reals."""
        return self._each("Sin", numpy.sin)

    def _each(self, operator: str, fold: Callable[[Array], Array]) -> Number:
        if self.computed is None:
            with numpy.errstate(all="ignore"):
                return self.numbers.of(fold(numpy.asarray(self.known)))
        value = self.numbers.node(operator, self.computed)
        return replace(self, computed=value, low=0 if operator == "Abs" else -inf, high=inf)

    # ---- vectors and matrices

    def __getitem__(self, place: int | slice) -> Number:
        """Takes one number out of a vector, or several; negative places count from the end."""
        single = isinstance(place, int)
        if isinstance(place, int):
            start, stop = place, place + 1 or END
        else:
            start, stop = place.start or 0, END if place.stop is None else place.stop
        if self.computed is None:
            return self.numbers.of(numpy.asarray(self.known)[start:stop])
        if single and self.single:
            return self
        vector, numbers = self.computed, self.numbers
        piece = numbers.once(lambda: part(numbers.op, vector, start, stop), "part", vector.name, start, stop)
        return replace(self, computed=piece, single=single)

    def squeezed(self, axis: int) -> Number:
        """Returns it without an axis of length 1."""
        return self._arranged(lambda array: array.squeeze(axis), "Squeeze", 10, axes=[axis])

    def transposed(self) -> Number:
        """Returns a matrix whose rows are the columns of this one."""
        return self._arranged(lambda array: array.T, "Transpose", 1, perm=[1, 0])

    def along(self, axis: int, rank: int) -> Number:
        """Returns a vector as one axis of so many, all others of length 1."""
        shape = [-1 if other == axis else 1 for other in range(rank)]
        if self.computed is None:
            return self.numbers.of(numpy.reshape(numpy.asarray(self.known), shape))
        if rank == 1:
            return self
        value, numbers = self.computed, self.numbers
        write = numbers.op.at(5).Reshape
        return replace(self, computed=numbers.once(lambda: write(value, numbers.op.const(shape)), value.name, *shape))

    def product(self) -> Number:
        """Returns the product of a vector; 1 if it is empty."""
        if self.computed is None:
            return self.numbers.of(prod(numpy.asarray(self.known).tolist()))
        value, numbers = self.computed, self.numbers
        if self.single:
            return self
        made = numbers.once(lambda: product(numbers.op, value), "product", value.name)
        return replace(self, computed=made, low=0 if self.low >= 0 else -inf, high=inf, single=True)

    def row_sums(self) -> Number:
        """Returns the sum of each row of a matrix, in a column."""
        sums = self._arranged(lambda array: array.sum(1)[:, None], "ReduceSum", 12, axes=[1], keepdims=1)
        return replace(sums, low=-inf, high=inf)

    def _arranged(self, fold: Callable[[Array], Array], operator: str, opset: int, **attributes: Any) -> Number:
        if self.computed is None:
            return self.numbers.of(fold(numpy.asarray(self.known)))
        value, numbers = self.computed, self.numbers
        write = getattr(numbers.op.at(opset), operator)
        made = numbers.once(lambda: write(value, **attributes), operator, value.name, str(attributes))
        return replace(self, computed=made)

    def range(self, count: Number | int, step: Number | int = 1) -> Number:
        """Returns so many numbers from this one on, as a vector."""
        return self.whole() + self.numbers.up_to(count) * self.numbers.of(step).whole()


def _product(a: float, b: float) -> float:
    return a * b if a and b else 0  # also where the other one is infinite


def _floor_divided(a: Array, b: Array) -> Array:
    """Divides like `//`, but by 1 where the divisor is 0: of no elements there are no parts."""
    result: Array = a // numpy.where(b == 0, 1, b)
    return result
