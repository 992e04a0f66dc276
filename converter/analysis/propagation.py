# SPDX-License-Identifier: Apache-2.0
"""Finds what is known of the elements of shapes, axes and bounds: numbers, and the symbols of dimensions.

onnx propagates them too, but only through some versions of the operators that compute with shapes, and it takes some
integers for shapes that are none. Here each operator means what its text says, at every opset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from onnx import TensorProto

from onnx_convert.analysis.evaluation import taken
from onnx_convert.model import tensors
from onnx_convert.model.attributes import given
from onnx_convert.model.tensors import elements_of
from onnx_convert.spec import opsets
from onnx_convert.spec.types import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from onnx import NodeProto, TypeProto

Size = int | str | None  # of a dimension: its number, the name of its symbol, or None

LONGEST: Final = 64  # elements: shapes and axes are short
_DEPTH: Final = 100  # nodes from a value back to where it comes from
_INTEGERS: Final = (TensorProto.INT32, TensorProto.INT64)
_RANGE: Final[dict[int, int]] = {TensorProto.INT32: 2**31, TensorProto.INT64: 2**63}


class Vector(NamedTuple):
    """The elements of an integer tensor of rank 0 or 1, as far as they are known."""

    sizes: tuple[Size, ...]
    scalar: bool = False

    @property
    def numbers(self) -> list[int] | None:
        """The elements, if all of them are numbers."""
        known = [one for one in self.sizes if isinstance(one, int)]
        return known if len(known) == len(self.sizes) else None


def dims_of(kind: TypeProto | None) -> list[Size] | None:
    """Returns the dimensions of a tensor type, None if its rank is not known."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    return [size(dim) for dim in kind.tensor_type.shape.dim]


class Elements:
    """Finds the elements of the values of one graph, and remembers them.

    `source` gives the node or the tensor that a value comes from, `type_of` what is known of its type, `outer` the
    elements of values of the graphs around this one.
    """

    def __init__(
        self,
        source: Callable[[str], NodeProto | TensorProto | None],
        type_of: Callable[[str], TypeProto | None],
        opset: int,
        outer: Callable[[str], Vector | None] = lambda _: None,
    ) -> None:
        self._source = source
        self._type_of = type_of
        self._opset = opset
        self._outer = outer
        self._found: dict[str, Vector | None] = {}
        self._depth = 0

    def of(self, name: str) -> Vector | None:
        """Returns what is known of the elements of a value, None if not even their number is."""
        if not name:
            return None
        if name not in self._found:
            self._found[name] = None  # a cycle of names ends here
            self._depth += 1
            found = self._compute(name) if self._depth < _DEPTH else None
            self._depth -= 1
            self._found[name] = found if found is not None else self._of_type(name)
        return self._found[name]

    def _of_type(self, name: str) -> Vector | None:
        """Returns elements nothing is known of but how many there are."""
        dims = dims_of(self._type_of(name))
        if dims == []:
            return Vector((None,), scalar=True)
        if dims is not None and len(dims) == 1 and isinstance(dims[0], int) and dims[0] <= LONGEST:
            return Vector((None,) * dims[0])
        return None

    def _compute(self, name: str) -> Vector | None:
        source = self._source(name)
        if source is None:
            return self._outer(name)
        if isinstance(source, TensorProto):
            return of_tensor(source)
        if opsets.canonical_domain(source.domain) != opsets.AI_ONNX:
            return None
        if source.op_type == "Constant":
            tensor = tensors.tensor_of(source)
            return of_tensor(tensor) if tensor is not None else None
        rule = _RULES.get(source.op_type)
        if rule is None or any(attribute.ref_attr_name for attribute in source.attribute):
            return None
        found = rule(_Step(source, self._opset, self.of, self._type_of))
        return found if found is not None and len(found.sizes) <= LONGEST else None


def of_tensor(tensor: TensorProto) -> Vector | None:
    """Returns the elements of a short integer tensor that holds them."""
    if tensor.data_type not in _INTEGERS or len(tensor.dims) > 1 or tensor.data_location == TensorProto.EXTERNAL:
        return None
    if tensors.elements(tensor) > LONGEST:
        return None
    return Vector(tuple(int(one) for one in elements_of(tensor).ravel()), scalar=not tensor.dims)


class _Step(NamedTuple):
    """A node on the way from a value back to where it comes from."""

    node: NodeProto
    opset: int
    elements: Callable[[str], Vector | None]
    type_of: Callable[[str], TypeProto | None]

    def input(self, index: int) -> Vector | None:
        names = self.node.input
        return self.elements(names[index]) if index < len(names) and names[index] else None

    def has(self, index: int) -> bool:
        return index < len(self.node.input) and bool(self.node.input[index])

    def dtype(self, index: int) -> int:
        kind = self.type_of(self.node.input[index])
        return kind.tensor_type.elem_type if kind is not None else 0

    def bounds(self, name: str, index: int, since: int) -> list[int] | None:
        """Returns integers that are an attribute up to a version and an input from it on."""
        if self.opset < since:
            found = given(self.node).get(name)
            return list(found) if isinstance(found, list | tuple) else None
        vector = self.input(index)
        return vector.numbers if vector is not None else None


def _identity(step: _Step) -> Vector | None:
    return step.input(0)


def _cast(step: _Step) -> Vector | None:
    """Keeps integers what they are where the new dtype can hold them; what is not an integer is not looked at."""
    to = given(step.node).get("to")
    vector = step.input(0)
    if vector is None or to not in _INTEGERS or step.dtype(0) not in _INTEGERS:
        return None
    return Vector(tuple(_held(one, int(to)) for one in vector.sizes), vector.scalar)


def _shape(step: _Step) -> Vector | None:
    dims = dims_of(step.type_of(step.node.input[0]))
    if dims is None:
        return None
    bounds = given(step.node)
    return Vector(tuple(dims[slice(bounds.get("start"), bounds.get("end"))]))


def _gather(step: _Step) -> Vector | None:
    data, chosen = step.input(0), step.input(1)
    if data is None or chosen is None or data.scalar or given(step.node).get("axis", 0) not in (0, -1):
        return None
    numbers = chosen.numbers
    count = len(data.sizes)
    if numbers is None or not all(-count <= one < count for one in numbers):
        return Vector((None,) * len(chosen.sizes), chosen.scalar)
    return Vector(tuple(data.sizes[one] for one in numbers), chosen.scalar)


def _slice(step: _Step) -> Vector | None:
    data = step.input(0)
    starts, ends = step.bounds("starts", 1, 10), step.bounds("ends", 2, 10)
    if data is None or data.scalar or starts is None or ends is None or len(starts) != 1 or len(ends) != 1:
        return None
    by = [1]
    if step.has(4):
        found = step.input(4)
        if found is None or found.numbers is None or len(found.sizes) != 1 or not found.numbers[0]:
            return None
        by = found.numbers
    if step.has(3) and (axes := step.input(3)) is not None and axes.numbers not in ([0], [-1]):
        return None
    return Vector(tuple(data.sizes[index] for index in taken(len(data.sizes), starts[0], ends[0], by[0])))


def _concat(step: _Step) -> Vector | None:
    parts: list[Size] = []
    for index in range(len(step.node.input)):
        part = step.input(index)
        if part is None or part.scalar:
            return None
        parts += part.sizes
    return Vector(tuple(parts))


def _unsqueeze(step: _Step) -> Vector | None:
    vector = step.input(0)
    if vector is None or not vector.scalar:
        return None
    return Vector(vector.sizes) if step.bounds("axes", 1, 13) in ([0], [-1]) else None


def _squeeze(step: _Step) -> Vector | None:
    vector = step.input(0)
    if vector is None or len(vector.sizes) != 1:
        return None
    return Vector(vector.sizes, scalar=True)


def _reshape(step: _Step) -> Vector | None:
    """Reshapes to rank 1 or 0; the elements stay."""
    vector, shape = step.input(0), step.bounds("shape", 1, 5)
    if vector is None or shape is None or len(shape) > 1:
        return None
    return Vector(vector.sizes, scalar=not shape) if shape in ([], [-1], [len(vector.sizes)]) else None


def _product(step: _Step) -> Vector | None:
    vector, options = step.input(0), given(step.node)
    if vector is None or vector.scalar or step.has(1) or options.get("axes", [0]) not in ([0], [-1]):
        return None
    total: Size = 1
    for one in vector.sizes:
        total = _times(total, one)
    return Vector((_held(total, TensorProto.INT64),), scalar=not options.get("keepdims", 1))


def _plus(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return a if b == 0 else b if a == 0 else None


def _minus(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if b == 0 else 0 if a is not None and a == b else None


def _times(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return a if b == 1 else b if a == 1 else 0 if 0 in (a, b) else None


def _over(a: Size, b: Size) -> Size:
    """Divides integers towards zero."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a if b == 1 else None


def _held(number: Size, dtype: int) -> Size:
    """Returns a number that the dtype can hold; of any other nothing is known."""
    limit = _RANGE.get(dtype, 0)
    return None if isinstance(number, int) and not -limit <= number < limit else number


def _pairwise(compute: Callable[[Size, Size], Size]) -> Callable[[_Step], Vector | None]:
    def rule(step: _Step) -> Vector | None:
        if step.opset < 7 and step.node.attribute:
            return None  # broadcasting as it was then
        a, b = step.input(0), step.input(1)
        dtype = step.dtype(0) or step.dtype(1)
        if a is None or b is None or dtype not in _INTEGERS:
            return None
        count = max(len(a.sizes), len(b.sizes)) if 0 not in (len(a.sizes), len(b.sizes)) else 0
        if any(len(one.sizes) not in (1, count) for one in (a, b)):
            return None
        pairs = zip(_stretched(a.sizes, count), _stretched(b.sizes, count), strict=True)
        return Vector(tuple(_held(compute(x, y), dtype) for x, y in pairs), a.scalar and b.scalar)

    return rule


def _stretched(sizes: Sequence[Size], count: int) -> Iterable[Size]:
    return sizes if len(sizes) == count else [sizes[0]] * count


_RULES: Final = {
    "Identity": _identity,
    "Cast": _cast,
    "Shape": _shape,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "ReduceProd": _product,
    "Add": _pairwise(_plus),
    "Sub": _pairwise(_minus),
    "Mul": _pairwise(_times),
    "Div": _pairwise(_over),
}
