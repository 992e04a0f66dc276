# SPDX-License-Identifier: Apache-2.0
"""Converts hostile models in child processes that may die, and counts what comes of it.

usage: python tests/helpers/hostile/fuzz.py [--count N] [--seed S] [--kinds nodes,fields] [--processes P] [--show]

Anything but a converted model, a refusal or an invalid model is a failure: a crash of the process, an error that is a
bug of ours (70), more than 15 seconds, more than 4 GB of address space. Each failure is printed with what makes it
again: kind, seed and number. Exit code 1 if there is any.
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

if __name__ == "__main__":  # a script's own folder is on the path, its parent is not
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from hostile import mutations

SECONDS = 15
MEMORY = 4 << 30


def outcome(data: bytes, target: int) -> str:
    """What becomes of one model."""
    import onnx_convert
    from onnx_convert.errors import InvalidModelError, RefusedError, UsageError

    try:
        onnx_convert.convert(data, to=target).model.SerializeToString()
    except InvalidModelError as error:
        return "invalid" if "\n" not in str(error) else f"70 two lines: {error}"
    except (RefusedError, UsageError) as error:
        return "refused" if isinstance(error, RefusedError) else "usage"
    except Exception as error:
        return f"70 {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "converted"


def work(kind: str, seed: int, numbers: list[int], pipe: int) -> None:
    """Runs in a child: tells the number that it begins, then what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    for number in numbers:
        _, data, target = mutations.hostile(kind, seed, number)
        told = outcome(data, target).encode()[:1000]
        os.write(pipe, struct.pack("<qi", number, len(told)) + told)


def run(kind: str, seed: int, numbers: list[int]) -> list[tuple[int, str, float]]:
    """What came of each number, and after how many seconds."""
    found: list[tuple[int, str, float]] = []
    waiting = list(numbers)
    while waiting:
        here, there = os.pipe()
        child = os.fork()
        if not child:
            os.close(here)
            with contextlib.suppress(BaseException):
                work(kind, seed, waiting, there)
            os._exit(0)
        os.close(there)
        buffer, began = b"", time.monotonic()
        killed = ""
        while True:
            ready, _, _ = select.select([here], [], [], max(began + SECONDS - time.monotonic(), 0))
            if not ready:
                killed = "hang"
                os.kill(child, 9)
                break
            part = os.read(here, 65536)
            if not part:
                break
            buffer += part
            while len(buffer) >= 12:
                number, size = struct.unpack("<qi", buffer[:12])
                if len(buffer) < 12 + size:
                    break
                now = time.monotonic()
                found.append((number, buffer[12 : 12 + size].decode("utf-8", "replace"), now - began))
                waiting.remove(number)
                buffer, began = buffer[12 + size :], now
        os.close(here)
        status = os.waitpid(child, 0)[1]
        if waiting:
            signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            found.append((waiting.pop(0), killed or f"crash by signal {signal}", time.monotonic() - began))
    return found


def is_failure(told: str) -> bool:
    return told.startswith(("70", "crash", "hang"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(mutations.KINDS))
    given = parser.parse_args()
    import onnx_convert.adapters
    import onnx_convert.api  # noqa: F401  (once, for all children)

    mutations.corpus()
    kinds = given.kinds.split(",")
    each = max(given.count // len(kinds), 1)
    failed = 0
    for kind in kinds:
        counts: Counter[str] = Counter()
        slowest = 0.0
        for first in range(given.first, given.first + each, 500):
            for number, told, seconds in run(
                kind, given.seed, list(range(first, min(first + 500, given.first + each)))
            ):
                counts[told.split()[0]] += 1
                slowest = max(slowest, seconds)
                if seconds > 5 and not is_failure(told):
                    print(f"slow: {kind} {given.seed} {number} {seconds:.1f} s", flush=True)
                if is_failure(told):
                    failed += 1
                    name, _, target = mutations.hostile(kind, given.seed, number)
                    print(f"{kind} {given.seed} {number} {name} to {target}: {told}", flush=True)
        print(f"{kind:11s} {dict(counts)} slowest {slowest:.1f} s", flush=True)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"{failed} failures; the largest process had {memory} MB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
