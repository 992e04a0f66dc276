# SPDX-License-Identifier: Apache-2.0
"""What many models cost in one call, beside other ways to convert them on the same machine in the same minutes.

    python tests/bench/many.py                   500 small models, eight of 1 GB; some minutes, 24 GB of disk
    python tests/bench/many.py --models 20 --big 2 --megabytes 2    seconds; the figures mean nothing

Beside it: the converter of onnx, one model after the other in one warm process; a loop that calls our own command for
each; `cp`; and the memory of one worker after many models, beside that after a tenth of them.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import onnx
import workloads

import onnx_convert
from onnx_convert.batch.job import Job, perform

COMMAND = [sys.executable, "-m", "onnx_convert"]
LOOPED = 25  # of the loop over our command, which is the slowest by far: the rest is reckoned
CPP = """
import onnx, pathlib, sys
from onnx import version_converter
folder, out = map(pathlib.Path, sys.argv[1:])
for path in sorted(folder.glob("*.onnx")):
    onnx.save(version_converter.convert_version(onnx.load(path), 17), out / path.name)
"""
WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
import many
print(many.peak(sys.argv[2], int(sys.argv[3])))
"""


def timed(work: Callable[[], object]) -> float:
    """Returns how many seconds a work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def peak(path: str, rounds: int) -> int:
    """Returns the peak of this process's memory in bytes after it has converted a model many times."""
    for number in range(rounds):
        outcome = perform(Job("a", path, f"{path}.{number % 7}", {"to": 17}))
        assert outcome.ok, outcome.message
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def small(folder: Path, count: int) -> None:
    """Writes models of 40 nodes each, ten of them Softmax over a middle axis."""
    folder.mkdir()
    content = workloads.chain(40, 12, softmax=True).SerializeToString()
    for number in range(count):
        (folder / f"{number:04}.onnx").write_bytes(content)


def big(folder: Path, count: int, megabytes: int) -> None:
    folder.mkdir()
    onnx.save(workloads.layered(megabytes), folder / "0.onnx")
    for number in range(1, count):
        shutil.copy(folder / "0.onnx", folder / f"{number}.onnx")


def loop(folder: Path, out: Path) -> None:
    out.mkdir()
    for path in sorted(folder.glob("*.onnx"))[:LOOPED]:
        run(*COMMAND, path, "--to", "17", "-q", "-o", out / path.name)


def rows(folder: Path, models: int, bigs: int, megabytes: int, rounds: int) -> list[dict[str, object]]:
    """Returns the lines of the table: a name, the relation, its bar, and whether the relation is to be above it."""
    small(folder / "small", models)
    (folder / "cpp").mkdir()
    ours = timed(lambda: run(*COMMAND, folder / "small", "--to", "17", "-q", "-j", "2", "-o", folder / "ours"))
    cpp = timed(lambda: run(sys.executable, "-c", CPP, folder / "small", folder / "cpp"))
    looped = timed(lambda: loop(folder / "small", folder / "loop")) * models / min(models, LOOPED)
    again = timed(lambda: run(*COMMAND, folder / "small", "--to", "17", "-q", "-j", "2", "-o", folder / "ours"))
    big(folder / "big", bigs, megabytes)
    copied = timed(lambda: run("cp", "-r", folder / "big", folder / "copy"))
    moved = timed(lambda: run(*COMMAND, folder / "big", "--to", "13", "-q", "-j", "2", "-o", folder / "moved"))
    path = str(folder / "small" / "0000.onnx")
    few, many = (
        int(subprocess.check_output([sys.executable, "-c", WORKER, str(Path(__file__).parent), path, str(count)]))
        for count in (max(rounds // 10, 1), rounds)
    )
    told = [
        (f"{models} small models, the C++ converter one by one", cpp / ours, 2.0, True),
        (f"{models} small models, a loop over our command", looped / ours, 10.0, True),
        (f"{models} small models that are up to date", again / ours, 1.0, False),
        (f"{bigs} models of {megabytes} MB, cp", moved / copied, 1.3, False),
        (f"memory of a worker after {rounds} models", many / few, 1.05, False),
    ]
    return [dict(zip(("name", "value", "bar", "above"), row, strict=True)) for row in told]


def main() -> None:
    """Prints the table, and writes it as JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--big", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    print(f"onnx-convert {onnx_convert.__version__}, onnx {onnx.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        table = rows(Path(folder), asked.models, asked.big, asked.megabytes, asked.rounds)
    for row in table:
        value, bar = float(str(row["value"])), float(str(row["bar"]))
        fine = value >= bar if row["above"] else value <= bar
        sign = "at least" if row["above"] else "at most"
        print(f"{row['name']:56} {value:7.2f} x   {sign} {bar:g}   {'ok' if fine else 'OVER'}")
    if asked.json:
        asked.json.write_text(json.dumps(table))


if __name__ == "__main__":
    main()
