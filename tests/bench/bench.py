# SPDX-License-Identifier: Apache-2.0
"""What conversion costs, beside what a copy and an import cost on the same machine in the same minutes.

    python tests/bench/bench.py                 one table; takes minutes, 10 GB of disk and 4 GB of memory
    python tests/bench/bench.py --cpp           the converter of onnx beside it, where it finishes: minutes more, 10 GB
    python tests/bench/bench.py --json out.json
    python tests/bench/bench.py --size smoke    seconds; the figures mean nothing

Whole processes are measured in turns, with warm files; the median counts, or the least where gigabytes are written: a
disk that is behind makes some runs wait for several times as long, whoever runs. Linux only: peaks of memory and bytes
read come from the kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

WORKLOADS = Path(__file__).with_name("workloads.py")
MB = 1e6
IMPORT = [sys.executable, "-c", "import onnx"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
CLICK = [sys.executable, "-c", "import click\n@click.command()\n@click.option('--to')\ndef main(to): 'Help.'\nmain()"]


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    megabytes: tuple[int, int, int]  # of single files; the middle one is timed
    external: int  # megabytes
    nodes: int
    rounds: int


SIZES = {"full": Size((250, 1000, 1900), 2200, 20_000, 5), "smoke": Size((2, 4, 6), 4, 400, 1)}


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, what it is held against, and the bar for their relation."""

    name: str
    measured: str
    beside: str
    value: float
    bar: float
    unit: str = "x"

    @property
    def verdict(self) -> str:
        return "ok" if self.value <= self.bar else "over"


@dataclass(frozen=True)
class Cost:
    """Of a process."""

    seconds: float
    peak: float  # bytes


def process(command: list[str | Path]) -> Cost:
    """Runs a command to its end."""
    started = time.perf_counter()
    child = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"failed with {child.returncode}: {command}")
    return Cost(took, usage.ru_maxrss * 1024.0)


def workload(name: str, *arguments: object) -> dict[str, float]:
    """Runs a workload in a process of its own; its findings."""
    command = [sys.executable, str(WORKLOADS), name, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=ENVIRONMENT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def in_turns(
    rounds: int,
    results: Sequence[Path] = (),
    pick: Callable[[Iterable[float]], float] = statistics.median,
    **commands: list[str | Path],
) -> dict[str, Cost]:
    """Returns the median cost of each command, run one after the other and again; an unmeasured round warms the files.

    `results` are deleted before each run, off the clock: making a file costs something else than replacing one. Nor is
    anything still on its way to the disk then, for which a run would have to wait.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            for path in results:
                path.unlink(missing_ok=True)
            os.sync()
            cost = process(command)
            if number:
                costs[name].append(cost)
    return {
        name: Cost(pick(c.seconds for c in found), statistics.median(c.peak for c in found))
        for name, found in costs.items()
    }


def convert(source: Path, destination: Path, opset: int = 13) -> list[str | Path]:
    """The command line, as a process."""
    return [sys.executable, "-m", "onnx_convert", source, "--to", str(opset), "-o", destination, "--quiet"]


def files(size: Size, folder: Path, *, cpp: bool) -> Iterator[Row]:
    """A single file: time beside cp and an import, and memory at three sizes."""
    source = folder / "model.onnx"
    out, copy, saved = results = [folder / name for name in ("out.onnx", "copy.onnx", "saved.onnx")]
    for megabytes in size.megabytes:
        workload("make_file", source, megabytes)
        commands = {
            "convert": convert(source, out),
            "cp": ["cp", source, copy],
            "import": IMPORT,
        }
        timed = megabytes == size.megabytes[1]
        if timed:
            commands["load and save"] = [sys.executable, WORKLOADS, "load_and_save", source, saved]
        cost = in_turns(size.rounds if timed else 1, results, **commands)
        if timed:
            floor = cost["cp"].seconds + cost["import"].seconds
            beside = f"cp {cost['cp'].seconds:.2f} s + import onnx {cost['import'].seconds:.2f} s"
            took = cost["convert"].seconds
            yield Row(f"{megabytes} MB in one file, 12 to 13", f"{took:.2f} s", beside, took / floor, 1.5)
            rivals = {"onnx.load and onnx.save": cost["load and save"]}
            if cpp:
                rivals["C++ converter"] = process([sys.executable, WORKLOADS, "cpp", source, saved])
            for name, rival in rivals.items():
                text = f"{name}: {rival.seconds:.2f} s, {rival.peak / MB:.0f} MB"
                yield Row("  beside", f"{took:.2f} s", text, took / rival.seconds, 1.0)
        extra = (cost["convert"].peak - cost["import"].peak) / MB
        measured = f"peak {cost['convert'].peak / MB:.0f} MB"
        beside = f"import onnx {cost['import'].peak / MB:.0f} MB"
        yield Row(f"  memory at {megabytes} MB", measured, beside, extra, 100, "MB more")


def external(size: Size, folder: Path) -> Iterator[Row]:
    """Weights in a data file: in the same folder they stay, and nobody reads them; into another they are copied."""
    source = folder / "external.onnx"
    workload("make_external", source, size.external)
    data, other = folder / "external.onnx.data", folder / "other"
    other.mkdir()
    outs = [folder / "out.onnx", other / "out.onnx"]
    copies = [other / data.name, folder / "copy.data"]
    read = workload("bytes_read", source, outs[0])["read"] / MB
    cost = in_turns(
        size.rounds,
        [*outs, *copies],
        min,
        same=convert(source, outs[0]),
        other=convert(source, outs[1]),
        cp=["cp", data, copies[1]],
        **{"import": IMPORT},
    )
    base, copying = cost["import"].seconds, cost["cp"].seconds
    beside = f"import onnx {base:.2f} s"
    name = f"{size.external} MB of external data, same folder"
    yield Row(name, f"{cost['same'].seconds:.2f} s", beside, read, 1.0, "MB read")
    beside = f"cp {copying:.2f} s + import onnx {base:.2f} s"
    yield Row("  into another folder", f"{cost['other'].seconds:.2f} s", beside,
              cost["other"].seconds / (copying + base), 1.3)  # fmt: skip
    extra = (max(cost["same"].peak, cost["other"].peak) - cost["import"].peak) / MB
    yield Row("  memory", f"peak {cost['other'].peak / MB:.0f} MB", f"import onnx {cost['import'].peak / MB:.0f} MB",
              extra, 100, "MB more")  # fmt: skip


def graphs(size: Size, folder: Path, *, cpp: bool) -> Iterator[Row]:
    """Many nodes and no weights, in one process."""
    del folder
    found = workload("upgrade", size.nodes, size.rounds, cpp)
    took = f"{found['convert']:.3f} s"
    yield Row(f"{size.nodes} nodes, 13 to 17, none rewritten", took, f"one strict infer_shapes {found['infer']:.3f} s",
              found["convert"] / found["infer"], 3.0)  # fmt: skip
    if cpp:
        yield Row("  beside", took, f"C++ converter: {found['cpp']:.2f} s", found["convert"] / found["cpp"], 1.0)
    found = workload("rewrite", size.nodes, size.rounds, cpp)
    took = f"{found['convert']:.3f} s"
    yield Row(f"{size.nodes} nodes, 12 to 13, {size.nodes // 4} Softmax rewritten", took,
              f"one strict infer_shapes {found['infer']:.3f} s", found["convert"] / found["infer"], 8.0)  # fmt: skip
    if cpp:
        yield Row("  beside", took, f"C++ converter, once: {found['cpp']:.2f} s", found["convert"] / found["cpp"], 1.0)
    found = workload("scaling", size.nodes // 2, size.rounds)
    inherent = found["infer_one"] / found["infer_ten"]
    ten = f"ten models of {size.nodes // 2}: {found['ten']:.2f} s (one strict infer_shapes grows {inherent:.2f} x)"
    yield Row(f"{size.nodes * 5} nodes, a quarter rewritten", f"{found['one']:.2f} s", ten,
              found["one"] / found["ten"], 1.2)  # fmt: skip


def memory(size: Size, folder: Path) -> Iterator[Row]:
    """Measures a model in memory, changed where it is."""
    del folder
    found = workload("in_place", size.megabytes[1])
    yield Row(f"ModelProto of {size.megabytes[1]} MB, in place", f"{found['seconds']:.3f} s",
              f"the model: {found['model'] / MB:.0f} MB", found["extra"] / MB, 50, "MB more")  # fmt: skip


def starts(size: Size, folder: Path) -> Iterator[Row]:
    """What one pays for nearly nothing."""
    small = folder / "small.onnx"
    workload("make_small", small)
    cost = in_turns(
        2 * size.rounds,
        small=convert(small, folder / "small.out.onnx"),
        help=[sys.executable, "-m", "onnx_convert", "--help"],
        click=[*CLICK, "--help"],
        **{"import": IMPORT},
    )
    for name, rival, text in (("small", "import", "import onnx"), ("help", "click", "a bare click program")):
        label = "a model of 8 nodes, whole process" if name == "small" else "--help"
        beside = f"{text} {cost[rival].seconds:.3f} s"
        took = cost[name].seconds
        yield Row(label, f"{took:.3f} s", beside, took / cost[rival].seconds, 1.5)


def main() -> None:
    """Measures, prints each row as it comes, and writes JSON if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--cpp", action="store_true", help="measure the C++ converter of onnx as well")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    parser.add_argument("--only", choices=["starts", "graphs", "memory", "files", "external"], help="one part")
    options = parser.parse_args()
    size = SIZES[options.size]
    parts: dict[str, Callable[[Path], Iterator[Row]]] = {
        "starts": lambda folder: starts(size, folder),
        "graphs": lambda folder: graphs(size, folder, cpp=options.cpp),
        "memory": lambda folder: memory(size, folder),
        "files": lambda folder: files(size, folder, cpp=options.cpp),
        "external": lambda folder: external(size, folder),
    }
    rows = []
    print(f"{'':48} {'measured':>14}  {'ratio':>14}  {'bar':>5}        beside")
    for name, part in parts.items():
        if options.only in (None, name):
            with (
                tempfile.TemporaryDirectory(prefix="onnx-convert-bench-") as folder,
                contextlib.suppress(BrokenPipeError),
            ):
                for row in part(Path(folder)):
                    rows.append(row)
                    ratio = f"{row.value:.2f} {row.unit}"
                    line = f"{row.name:48} {row.measured:>14}  {ratio:>14}  {row.bar:>5}  {row.verdict:4}  {row.beside}"
                    print(line, flush=True)
    if options.json:
        options.json.write_text(json.dumps([{**asdict(row), "verdict": row.verdict} for row in rows], indent=2))


if __name__ == "__main__":
    main()
