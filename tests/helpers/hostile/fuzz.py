# SPDX-License-Identifier: Apache-2.0
"""Converts hostile models in child processes that may die, and counts what comes of it.

usage: python tests/helpers/hostile/fuzz.py [--count N] [--seed S] [--first K] [--kinds nodes,sweep] [--show NUMBER]

Anything but a converted model, a refusal or an invalid model is a failure: a crash of the process, an error that is a
bug of ours (70), more than 10 seconds of the processor, more than 1 GB of memory; and a model that is called converted
without a word although onnx's own checks find fault with the source (false), or with the result (wrong). Each
failure is printed with what makes it again: kind, seed and number. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import select
import struct
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":  # a script's own folder is on the path, its parent is not
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import onnx
import onnx.checker
import onnx.shape_inference

from hostile import mutations

SECONDS = 10.0
"""Of the processor, for one model."""

PATIENCE = 60.0
"""Seconds by the clock after which a process hangs: the machine may be busy."""

MEMORY = 1 << 30
"""Bytes that one model may take."""

SPACE = 4 << 30
"""Bytes of address space."""

PIECE = 500
"""Models to a process."""

_RECORD = struct.Struct("<qdi")  # the number of a model, seconds of the processor, bytes of text that follow
_CONVERTED = "converted"


class Told(NamedTuple):
    """What came of a model: its number, an outcome and what it says, seconds of the processor."""

    number: int
    outcome: str
    seconds: float

    @property
    def is_failure(self) -> bool:
        return self.outcome.startswith(("70", "crash", "hang", "slow", "memory", "false", "wrong"))


def outcome(data: bytes, target: int) -> tuple[str, bytes]:
    """Returns what becomes of one model, and the result: "converted", "unchanged" if there was nothing to do, or
    "warned" if the report has warnings."""
    import onnx_convert
    from onnx_convert.errors import InvalidModelError, RefusedError, UsageError

    try:
        with onnx_convert.convert(data, to=target) as conversion:
            made = conversion.model.SerializeToString()
            if not conversion.report.changed:
                return "unchanged", made
            return ("warned" if conversion.report.warnings else _CONVERTED), made
    except InvalidModelError as error:
        return "invalid" if "\n" not in str(error) else f"70 two lines: {error}", b""
    except (RefusedError, UsageError) as error:
        return "refused" if isinstance(error, RefusedError) else "usage", b""
    except Exception as error:
        return f"70 {type(error).__name__}: {' '.join(str(error).split())[:300]}", b""


def fault_of(data: bytes) -> str:
    """Returns what onnx's checker and its strict inference say of a model, "" if they are satisfied or short of memory.
    What the model only states of its values does not count: neither that it is wrong nor that it is left out. onnx may
    take the process along."""
    model = onnx.ModelProto.FromString(data)
    _forget(model.graph)
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # C++ errors come as several unrelated types
        text = " ".join(str(error).split())[:300] or type(error).__name__
        if not any(word in text for word in _TOLERATED):
            return text
    for value in model.graph.output:
        value.ClearField("type")
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except Exception as error:
        text = " ".join(str(error).split())[:300] or type(error).__name__
        return "" if any(word in text for word in _UNFOUNDED) else text
    return ""


_TOLERATED = (
    "'type' of 'value_info'",  # a value whose type is not stated
    "'shape' of 'type'",
    "Invalid tensor data type 0",  # a type that is half stated
    "marked single but has an empty string",  # the region of Resize, which exporters leave out
    "type field and data field mismatch",  # no type at all
    "'type' of 'attr'",  # an attribute whose type follows from its value and the schema
    "bad_alloc",
    "ir_version",  # which gets a right one
    "IR version < 3",
    "not in graph input",  # initializers below IR version 4
)


_UNFOUNDED = (
    "bad_alloc",
    "instead is null",  # a value whose type is not stated
    "size input must be greater than 0",  # no text of a window says so
    "existing",  # statements about initializers
    "One and only one of the attributes",  # MeanVarianceNormalization without axes, which onnx writes out wrongly
)


def _forget(graph: onnx.GraphProto) -> None:
    """Takes out what is stated of values, and sizes below 0, which count as not known."""
    del graph.value_info[:]
    for value in (*graph.input, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.Clear()
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    _forget(inner)
                    for value in (*inner.input, *inner.output):
                        value.type.tensor_type.ClearField("shape")


def work(kind: str, seed: int, numbers: list[int], pipe: int) -> None:
    """Runs in a child: tells of each number what came of it, and once more if onnx's check thinks otherwise."""
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)

    def tell(number: int, seconds: float, text: str) -> None:
        told = text.encode()[:1000]
        os.write(pipe, _RECORD.pack(number, seconds, len(told)) + told)

    for number in numbers:
        _, data, target = mutations.hostile(kind, seed, number)
        began = time.process_time()
        told, result = outcome(data, target)
        took = time.process_time() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if took > SECONDS:
            told = f"slow: {took:.0f} s, then {told}"
        if memory > MEMORY:
            told = f"memory: {memory >> 20} MB, then {told}"
        tell(number, took, told)
        if told == _CONVERTED:
            if fault := fault_of(data):
                tell(number, 0.0, f"false: {fault}")
            elif fault := fault_of(result):
                tell(number, 0.0, f"wrong: {fault}")
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 > MEMORY:
            return  # onnx's check may have taken it; the next one begins anew


def run(kind: str, seed: int, numbers: list[int]) -> list[Told]:
    """Returns what came of each number. A process that died or hangs is followed by another one, for the numbers behind
    the one that was fatal."""
    found: dict[int, Told] = {}
    waiting = list(numbers)
    while waiting:
        killed, status = _piece(kind, seed, waiting, found)
        while waiting and waiting[0] in found:
            del waiting[0]
        died = os.WIFSIGNALED(status) or killed
        if waiting and died and (waiting[0] == numbers[0] or found):
            signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            if not _died_in_check(waiting, numbers, found, killed):
                number = waiting.pop(0)
                found[number] = Told(number, killed or f"crash by signal {signal}", PATIENCE if killed else 0.0)
    return [found[number] for number in numbers]


def _died_in_check(waiting: list[int], numbers: list[int], found: dict[int, Told], killed: str) -> bool:
    """Tells whether the process died while onnx looked at a model that was converted, which proves nothing; the model
    is marked, so that a second death is the next one's."""
    place = numbers.index(waiting[0])
    before = found.get(numbers[place - 1]) if place else None
    if before is None or before.outcome != _CONVERTED or killed:
        return False
    found[before.number] = before._replace(outcome="unjudged")
    return True


def _piece(kind: str, seed: int, numbers: list[int], found: dict[int, Told]) -> tuple[str, int]:
    """Runs one process, adds to what is found; returns "hang" if it had to be killed, and its status."""
    here, there = os.pipe()
    child = os.fork()
    if not child:
        os.close(here)
        with contextlib.suppress(BaseException):
            work(kind, seed, numbers, there)
        os._exit(0)
    os.close(there)
    buffer, began, killed = b"", time.monotonic(), ""
    while True:
        ready, _, _ = select.select([here], [], [], max(began + PATIENCE - time.monotonic(), 0))
        if not ready:
            killed = "hang"
            os.kill(child, 9)
            break
        part = os.read(here, 65536)
        if not part:
            break
        buffer += part
        began = time.monotonic()
        while len(buffer) >= _RECORD.size:
            number, seconds, size = _RECORD.unpack_from(buffer)
            if len(buffer) < _RECORD.size + size:
                break
            told = buffer[_RECORD.size : _RECORD.size + size].decode("utf-8", "replace")
            before = found.get(number)
            found[number] = Told(number, told, before.seconds if before else seconds)
            buffer = buffer[_RECORD.size + size :]
    os.close(here)
    return killed, os.waitpid(child, 0)[1]


def show(kind: str, seed: int, number: int) -> None:
    """Prints a model, and what comes of it, in this process."""
    name, data, target = mutations.hostile(kind, seed, number)
    try:
        text = onnx.printer.to_text(onnx.ModelProto.FromString(data))
    except Exception as error:  # what cannot be parsed
        text = f"{type(error).__name__}: {error}"
    print(f"{name} to {target}\n{text[:5000]}\n{outcome(data, target)[0]}\nonnx: {fault_of(data)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(mutations.KINDS))
    parser.add_argument("--show", type=int, help="print the model of this number of the one kind, and what comes of it")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    if given.show is not None:
        show(kinds[0], given.seed, given.show)
        return 0
    import onnx_convert.adapters
    import onnx_convert.api  # noqa: F401  (once, for all children)

    mutations.prepare(kinds)
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    slowest = dict.fromkeys(kinds, 0.0)
    failed, last = 0, given.first + max(given.count // len(kinds), 1)
    for first in range(given.first, last, PIECE):
        for kind in kinds:
            for told in run(kind, given.seed, list(range(first, min(first + PIECE, last)))):
                counts[kind][told.outcome.split()[0].rstrip(":")] += 1
                slowest[kind] = max(slowest[kind], told.seconds)
                if told.is_failure:
                    failed += 1
                    name, _, target = mutations.hostile(kind, given.seed, told.number)
                    print(f"{kind} {given.seed} {told.number} {name} to {target}: {told.outcome}", flush=True)
            print(f"{kind:11s} up to {first + PIECE}: {dict(counts[kind])} slowest {slowest[kind]:.1f} s", flush=True)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"{failed} failures; the largest process had {memory} MB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
