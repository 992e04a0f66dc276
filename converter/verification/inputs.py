# SPDX-License-Identifier: Apache-2.0
"""Makes inputs for a model from its signature, and from what its nodes say of how they are used.

Sizes that the model leaves open are a matter of trying: a `Plan` is one way to choose them, and a model that runs with
none of them has to be given its inputs.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy
from onnx import ModelProto

from onnx_convert.analysis import view
from onnx_convert.analysis.onnx_inference import infer
from onnx_convert.spec.types import size
from onnx_convert.verification import arranged, roles
from onnx_convert.verification.comparison import is_float
from onnx_convert.verification.signature import Dims, dims_of, dtype_of, evaluated, is_formula, needed
from onnx_convert.verification.uses import Uses
from onnx_convert.verification.values import RANDOM, edge_array, random_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import TypeProto

    from onnx_convert.model.source import SourceModel
    from onnx_convert.verification.roles import Allowed

Array = numpy.ndarray[Any, Any]
Shapes = dict[str, tuple[int, ...]]

_LARGEST: Final = 1 << 24  # elements of an input that is made up
_MUCH: Final = 1 << 18  # elements of an input that is larger than it has to be
_GROWN: Final = {1: 32, 2: 256}  # sizes, by the seed
_USUAL: Final = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 224, 256, 512)
_RANKS: Final = (2, 1, 3, 4, 0)


class Plan(NamedTuple):
    """A way to fill what a model leaves open: `size` for every open dimension (0: another one for each name), 1 for the
    `first` of each input if that is `single`, a rank for inputs without one, whole numbers in 0 to `most` where nothing
    is known of them (-1: small ones of both signs)."""

    size: int = 0
    single: bool = False
    rank: int = 2
    most: int = -1


class CannotError(Exception):
    """There are no inputs to be made."""


class Maker:
    """Makes inputs for one model. `given` are shapes that the user gave, `sizes` the dimensions that follow."""

    def __init__(self, source: SourceModel, given: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]) -> None:
        self._source = source
        self._given = given
        self._sizes = sizes
        self.inputs = needed(source.proto)
        self._uses = Uses(source.proto)
        self._allowed: dict[Plan, tuple[Shapes, dict[str, Allowed]]] = {}
        for value in self.inputs:
            _check_kind(value.name, value.type)

    @property
    def floats_freely(self) -> bool:
        """Whether an input takes any floats, so that those of the edges make a difference."""
        _, allowed = self._at(Plan())
        return any(
            value.type.WhichOneof("value") == "tensor_type"
            and is_float(dtype_of(value.type))
            and allowed[value.name].free
            for value in self.inputs
        )

    def plans(self) -> Iterator[Plan]:
        """Yields the ways to fill what is open, the most natural first."""
        dims = [dims_of(value.type) for value in self.inputs if value.name not in self._given]
        sizes = any(not isinstance(dim, int) for known in dims if known is not None for dim in known)
        ranks: Sequence[int] = _RANKS if None in dims else (2,)
        for most in (-1, 1, 0):
            for rank in ranks:
                yield Plan(0, single=False, rank=rank, most=most)
                if sizes or len(ranks) > 1:
                    yield Plan(0, single=True, rank=rank, most=most)
                    for single in (False, True):
                        for usual in _USUAL:
                            yield Plan(usual, single=single, rank=rank, most=most)

    def grown(self, plan: Plan, seed: int) -> Plan | None:
        """Returns the plan with larger sizes for what is open, others for each of the first seeds; None if nothing is,
        or if it becomes too much. What fails in small sizes alone, or in large ones alone, is seen so."""
        dims = [dims_of(value.type) for value in self.inputs if value.name not in self._given]
        known = {*self._sizes}
        is_open = any(not isinstance(dim, int) and dim not in known for found in dims if found for dim in found)
        if not is_open or seed not in _GROWN:
            return None
        for single in (plan.single, True):
            larger = plan._replace(size=_GROWN[seed], single=single)
            with suppress(CannotError):
                if all(math.prod(shape) <= _MUCH for shape in self.shapes(larger).values()):
                    return larger
        return None

    def shapes(self, plan: Plan) -> Shapes:
        """Returns a shape for each input that is a tensor; CannotError if one would be too large."""
        names = dict(self._sizes)
        shapes: Shapes = {}
        for later in (False, True):  # dimensions called like a formula wait for the others
            for value in self.inputs:
                dims = dims_of(value.type)
                if value.name in self._given:
                    shapes[value.name] = self._given[value.name]
                    continue
                known: Dims = dims if dims is not None else (None,) * plan.rank
                shapes[value.name] = tuple(
                    self._size(dim, f"{value.name}:{i}", i, plan, names, later) for i, dim in enumerate(known)
                )
                if math.prod(shapes[value.name]) > _LARGEST:
                    raise CannotError(f"input {value.name!r} would have {math.prod(shapes[value.name])} elements")
        return shapes

    def make(self, plan: Plan, seed: int, kind: str = RANDOM) -> dict[str, Any]:
        """Returns values for all inputs, the same for the same seed; `kind` is random, or one of the edges."""
        shapes, allowed = self._at(plan)
        made = {}
        for number, value in enumerate(self.inputs):
            random = numpy.random.default_rng((seed, number))  # of its own: what one is does not depend on another
            rule = allowed[value.name]
            made[value.name] = self._value(value.type, shapes[value.name], rule, plan, kind, random, seed)
        return made

    def _size(
        self, dim: int | str | None, place: str, axis: int, plan: Plan, names: dict[str, int], later: bool
    ) -> int:
        if isinstance(dim, int):
            return dim
        if dim is not None and is_formula(dim):
            found = evaluated(dim, names) if later else None
            if found is not None and found >= 0:
                return found
            return names.setdefault(dim, _fresh(plan, axis, names)) if later else 1
        return names.setdefault(dim or place, _fresh(plan, axis, names, dim or ""))

    def _at(self, plan: Plan) -> tuple[Shapes, dict[str, Allowed]]:
        if plan not in self._allowed:
            shapes = self.shapes(plan)
            known = self._inferred(shapes)
            self._allowed[plan] = shapes, {v.name: roles.allowed(v.name, self._uses, known) for v in self.inputs}
        return self._allowed[plan]

    def _inferred(self, shapes: Shapes) -> dict[str, list[int | None]]:
        """Returns the dimensions of values, with inputs of these shapes, as far as inference finds them."""
        model = ModelProto.FromString(view.of_source(self._source).serialised())
        known: dict[str, list[int | None]] = {name: [*shape] for name, shape in shapes.items()}
        for value in model.graph.input:
            if value.name in shapes and value.type.WhichOneof("value") == "tensor_type":
                value.type.tensor_type.ClearField("shape")
                value.type.tensor_type.shape.SetInParent()
                for length in shapes[value.name]:
                    value.type.tensor_type.shape.dim.add(dim_value=length)
        del model.graph.value_info[:]
        try:
            graph = infer(model.SerializeToString(), check_type=False, strict=False, data_prop=True)
        except Exception:  # C++ errors come as several unrelated types
            return known
        for value in (*graph.value_info, *graph.output):
            if value.type.tensor_type.HasField("shape"):
                dims = [size(dim) for dim in value.type.tensor_type.shape.dim]
                known.setdefault(value.name, [dim if isinstance(dim, int) else None for dim in dims])
        return known

    def _value(
        self,
        kind: TypeProto,
        shape: tuple[int, ...],
        rule: Allowed,
        plan: Plan,
        edge: str,
        random: numpy.random.Generator,
        seed: int,
    ) -> Any:
        which = kind.WhichOneof("value")
        if which == "optional_type":
            inner = kind.optional_type.elem_type
            return None if seed % 3 == 2 else self._value(inner, shape, rule, plan, edge, random, seed)
        if which == "sequence_type":
            inner = kind.sequence_type.elem_type
            return [self._value(inner, shape, rule, plan, edge, random, seed) for _ in range(2)]
        if which == "map_type":
            return _map(kind, random)
        return _tensor(dtype_of(kind), shape, rule, plan, edge, random)


def _fresh(plan: Plan, axis: int, names: Mapping[str, int], name: str = "") -> int:
    if axis == 0 and plan.single:
        return 1
    return plan.size or (2 if "batch" in name.lower() else 2 + len(names))


def _check_kind(name: str, kind: TypeProto) -> None:
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        _check_kind(name, kind.sequence_type.elem_type if which == "sequence_type" else kind.optional_type.elem_type)
    elif which not in ("tensor_type", "map_type") or (which == "tensor_type" and not kind.tensor_type.elem_type):
        raise CannotError(
            f"input {name!r} has no dtype" if which in (None, "tensor_type") else f"input {name!r} is sparse"
        )


def _tensor(
    dtype: numpy.dtype[Any],
    shape: tuple[int, ...],
    rule: Allowed,
    plan: Plan,
    edge: str,
    random: numpy.random.Generator,
) -> Array:
    if rule.whole == "reshape" and plan.most == 1:  # the rest of the shape may have its -1 already
        return numpy.ones(shape, dtype)
    if rule.whole and (found := arranged.ARRANGEMENTS[rule.whole](shape, rule, random)) is not None:
        return numpy.asarray(found).astype(dtype)
    if rule.choices:
        picked = random.choice(numpy.array(rule.choices, dtype=object), size=shape)
        if dtype.kind == "O":
            return numpy.asarray([str(value) for value in numpy.ravel(picked)], dtype=object).reshape(shape)
        return numpy.asarray(picked).astype(dtype)
    if math.isfinite(rule.low) or math.isfinite(rule.high):
        return _between(dtype, shape, rule, random)
    if edge != RANDOM and rule.free:
        return edge_array(edge, random, dtype, shape)
    if plan.most >= 0 and "int" in dtype.name:
        return numpy.asarray(random.integers(0, plan.most + 1, size=shape)).astype(dtype)
    made = random_array(random, dtype, shape)
    if rule.nonzero and dtype.kind not in "bO":
        made = numpy.asarray(numpy.where(made == 0, numpy.ones_like(made), made))
    return made


def _between(dtype: numpy.dtype[Any], shape: tuple[int, ...], rule: Allowed, random: numpy.random.Generator) -> Array:
    low = rule.low if math.isfinite(rule.low) else rule.high - 4
    high = rule.high if math.isfinite(rule.high) else rule.low + 4
    if is_float(dtype):
        return numpy.asarray(random.uniform(low, high, shape)).astype(dtype)
    if dtype.kind in "bO":
        return random_array(random, dtype, shape)
    return numpy.asarray(random.integers(math.ceil(low), math.floor(high) + 1, size=shape)).astype(dtype)


def _map(kind: TypeProto, random: numpy.random.Generator) -> dict[Any, Any]:
    """Returns a map of a few entries, as onnxruntime takes it."""
    keys: Sequence[Any] = ["a", "b", "c"] if kind.map_type.key_type == 8 else [0, 1, 2]
    values = random_array(random, dtype_of(kind.map_type.value_type), (len(keys),))
    return dict(zip(keys, values.tolist(), strict=True))
