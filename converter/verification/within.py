# SPDX-License-Identifier: Apache-2.0
"""Compares values in the middle of two models: what rewritten nodes make, under the name that it has in both.

An output need not show that a rewritten node computes something else: an activation behind it may be closed, a softmax
saturated. Its own value does. Roundings add up on the way to it, so what differs is run once more on its own: the nodes
around it, on the values of the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy

from onnx_convert.verification.bundle import around, is_tensor
from onnx_convert.verification.comparison import EPSILON
from onnx_convert.verification.evaluators import LacksError, RunError
from onnx_convert.verification.first_difference import Found, first_difference
from onnx_convert.verification.subjects import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto

    from onnx_convert.verification.judging import Judge

    Feeds = Mapping[str, Any]

_SETS: Final = 3  # of inputs on which values are looked at
_MOST: Final = 1024  # values that are looked at; of more, so many, evenly spread
_FEW, _MANY = 8, 128  # values that are looked at in one run
_ROOM: Final = 1 << 28  # bytes that the values of one run may take, of each model
_DRAWS: Final = 3  # of roundings
_ROUNDINGS: Final = 16  # that two ways to compute the same may be apart
_TRIES: Final = 8  # values that differ and are run on their own


class Inside(NamedTuple):
    """How many values were compared, and the first that differs on its own: on which inputs, and what is around it."""

    values: int
    inputs: str = ""
    found: Found | None = None


def compare_values(
    source: Subject, result: Subject, judge: Judge, sets: Mapping[str, Feeds], suspects: Sequence[NodeProto]
) -> Inside:
    """Compares what nodes of the source make with what has the same name in the result, on some sets of inputs."""
    made = {name for node in result.proto.graph.node for name in node.output if name}
    own = {value.name for value in source.proto.graph.output}
    names = [name for node in suspects for name in node.output if name in made and name not in own | judge.random]
    if len(names) > _MOST:
        names = [names[i * len(names) // _MOST] for i in range(_MOST)]
    chosen = {name: sets[name] for name in [*sets][:_SETS]}
    looked, tries, size = 0, 0, _FEW
    while names:
        chunk, names = names[:size], names[size:]
        try:
            before = [*_computed(source, chunk, chosen.values())]
            after = [*_computed(result, chunk, chosen.values())]
        except (RunError, LacksError):  # with more outputs than they have they need not run
            continue
        looked += len(chunk)
        took = sum(value.nbytes for values in before for value in values if isinstance(value, numpy.ndarray))
        size = max(size // 2, 1) if took > _ROOM else min(size * 2, _MANY) if took < _ROOM // 4 else size
        for name in chunk:
            at = chunk.index(name)
            for (inputs, feeds), one, other in zip(chosen.items(), before, after, strict=True):
                if judge.output(name, one[at], other[at]).agrees:
                    continue
                tries += 1
                found = first_difference(source, result, judge, feeds, name)
                if found is not None and _differs_alone(found, source, result, judge):
                    return Inside(looked, inputs, found)
                break
            if tries >= _TRIES:
                return Inside(looked)
    return Inside(looked)


def _computed(subject: Subject, names: Sequence[str], sets: Any) -> Iterator[list[Any]]:
    """Yields these values for each set of inputs."""
    program = subject.program(more=names)
    for feeds in sets:
        yield program.run(feeds)[-len(names) :]


def _differs_alone(found: Found, source: Subject, result: Subject, judge: Judge) -> bool:
    """Returns whether the nodes around a value compute something else on the same inputs."""
    if found.untouched or not all(is_tensor(value) for value in found.known.values()):
        return False
    values = []
    for subject, nodes in ((source, found.source), (result, found.result)):
        with Subject(around(subject, nodes, found.known, found.value)) as alone:
            try:
                values.append(alone.program().run(found.known)[0])
            except (RunError, LacksError):
                return bool(values)  # the source runs alone, the result does not
    return not judge.output(found.value, *values).agrees


def is_ill_conditioned(found: Found, source: Subject) -> bool:
    """Returns whether roundings of what goes into the nodes around a value move it as far as both models are apart."""
    floats = {name: value for name, value in found.known.items() if is_tensor(value) and value.dtype.name in EPSILON}
    expected, got = (numpy.asarray(value) for value in (found.expected, found.got))
    if found.other_weight or not floats or expected.dtype.name not in EPSILON or expected.shape != got.shape:
        return False
    if not all(is_tensor(value) for value in found.known.values()):
        return False
    random = numpy.random.default_rng(0)
    values = []
    with Subject(around(source, found.source, found.known, found.value)) as alone:
        try:
            program = alone.program()
            for size in (0, *[1] * _DRAWS):
                noise = {name: _rounded(value, size, random) for name, value in floats.items()}
                values.append(numpy.asarray(program.run({**found.known, **noise})[0]).astype(numpy.float64))
        except (RunError, LacksError):
            return False
    with numpy.errstate(all="ignore"):
        moved = max(float(numpy.abs(value - values[0]).max(initial=0)) for value in values[1:])
        apart = float(numpy.abs(expected.astype(numpy.float64) - got.astype(numpy.float64)).max(initial=0))
    return apart <= _ROUNDINGS * moved < numpy.inf


def _rounded(value: Any, size: int, random: numpy.random.Generator) -> Any:
    """Returns floats that are apart from others by one rounding at most."""
    if not size:
        return value
    noise = 1 + size * EPSILON[value.dtype.name] * random.uniform(-1, 1, value.shape)
    return (value.astype(numpy.float64) * noise).astype(value.dtype)
