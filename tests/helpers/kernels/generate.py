# SPDX-License-Identifier: Apache-2.0
"""Writes the table of onnxruntime's kernels anew: python tests/helpers/kernels/generate.py [FOLDER].

Asks each release that has a wheel for this Python; the older ones, of which npm has a build for node, are asked there
if npm is there, else what the table says of them is kept. What was downloaded and answered stays in the folder, and is
not asked again.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from kernels.probes import Probe, probes  # noqa: E402
from kernels.table import Kernel, Line, lines, read, rendered  # noqa: E402
from onnx_convert.target import runtimes  # noqa: E402

TABLE: Final = HERE.parents[2] / "converter" / "target" / "kernel_tables" / "onnxruntime.txt"
NODE: Final = {"1.10": "1.10.0", "1.11": "1.11.0", "1.12": "1.12.1", "1.13": "1.13.1", "1.14": "1.14.0"}
WHEELS: Final = [
    row.version
    for row in runtimes.listed()
    if row.name == "onnxruntime" and tuple(map(int, row.version.split("."))) >= (1, 15)
]
NUMPY_2: Final = (1, 19)
"""The first release that was built for numpy 2."""
LISTS_NONE: Final = {"1.15": "1.16"}
"""Builds that list no kernels, and whose list is asked for instead where an answer does not tell."""

HEADER: Final = """\
# SPDX-License-Identifier: Apache-2.0
# The kernels of onnxruntime's CPU provider, and what it runs without one: operators with a function body, and float16
# between Casts. Written by tests/helpers/kernels/generate.py; how to read it says converter/target/kernels.py.
"""


LIMITS: Final = (
    "! Attention 1.24-1.31 left_window_size",
    "! Attention 1.24-1.31 right_window_size",
    "! DFT 1.10-1.24 inverse=1&onesided=1",
    "! DequantizeLinear 1.18 block_size",
    "! GRU 1.10- layout=1",
    "! LSTM 1.10- layout=1",
    "! NegativeLogLikelihoodLoss@19 1.15 ignore_index",
    "! QuantizeLinear 1.18 block_size",
    "! RNN 1.10- layout=1",
    "! RotaryEmbedding 1.23 rotary_embedding_dim&num_heads=none",
)
"""Attributes with which operators do not run, found by the cases that onnx publishes."""


class Build(NamedTuple):
    """An onnxruntime that can be asked: its release, the exact version, and the command that asks."""

    release: str
    version: str
    command: list[str]
    environment: dict[str, str]

    @property
    def source(self) -> str:
        """Where what it says comes from."""
        kind = "onnxruntime-node" if self.command[0] == "node" else "onnxruntime"
        return f"{kind} {self.version}, a model of one node for each version of each operator and its types"


def wheel(release: str, folder: Path) -> Build:
    """Returns the newest onnxruntime of a minor release, unpacked in the folder. Raises CalledProcessError."""
    place = folder / f"onnxruntime-{release}"
    if not place.exists():
        numpy = "numpy" if _key(release) >= NUMPY_2 else "numpy<2"
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--target", place]
        subprocess.run([*pip, f"onnxruntime=={release}.*", numpy], check=True, capture_output=True, text=True)
    version = next(place.glob("onnxruntime-*.dist-info")).name.removesuffix(".dist-info").split("-")[1]
    paths = os.pathsep.join(map(str, (place,)))
    return Build(release, version, [sys.executable, str(HERE / "ask.py")], {"PYTHONPATH": paths})


def node_package(release: str, folder: Path) -> Build:
    """Returns the onnxruntime of a minor release for node. Raises CalledProcessError, or OSError without npm."""
    place, version = folder / f"onnxruntime-node-{release}", NODE[release]
    if not place.exists():
        place.mkdir(parents=True)
        npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", f"onnxruntime-node@{version}"]
        subprocess.run(npm, cwd=place, check=True, capture_output=True, text=True)
    package = place / "node_modules" / "onnxruntime-node"
    return Build(release, version, ["node", str(HERE / "ask.js"), str(package)], {})


def asked(build: Build, questions: Path, folder: Path) -> Path:
    """Returns the file with the answers of a build; asks for those that are not there yet."""
    row = runtimes.find(f"onnxruntime@{build.release}")
    answers = folder / f"answers-{build.release}.txt"
    done = answers.with_suffix(".done")
    while not done.exists():
        before = answers.stat().st_size if answers.exists() else -1
        command = [*build.command, str(questions), str(answers), str(row.opset), str(row.ml)]
        ended = subprocess.run(command, env={**os.environ, **build.environment}, capture_output=True, check=False)
        if not ended.returncode:
            done.touch()
        elif answers.exists() and answers.stat().st_size == before:
            raise RuntimeError(ended.stderr.decode(errors="replace"))
    return answers


def write_questions(path: Path) -> list[Probe]:
    """Writes the probes as the builds read them, and returns them."""
    asking = list(probes())
    path.write_text(
        json.dumps(
            [[p.domain, p.version, p.first, p.last, p.every, base64.b64encode(p.message).decode()] for p in asking]
        )
    )
    return asking


def lines_of(build: Build, asking: list[Probe], questions: Path, folder: Path, others: list[Kernel]) -> list[Line]:
    """Returns the lines of a table for one build."""
    row = runtimes.find(f"onnxruntime@{build.release}")
    answers = read(asking, asked(build, questions, folder))
    assert row.opset is not None
    assert row.ml is not None
    return list(lines(answers, others, row.opset, row.ml))


def main() -> None:
    """Asks all releases, and writes the table."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else home)
        folder.mkdir(parents=True, exist_ok=True)
        questions = folder / "questions.json"
        asking = write_questions(questions)
        builds = [node_package(release, folder) for release in NODE] + [wheel(release, folder) for release in WHEELS]
        listing = read(asking, asked(wheel(LISTS_NONE["1.15"], folder), questions, folder)).kernels or []
        found = {build.release: lines_of(build, asking, questions, folder, listing) for build in builds}
        TABLE.write_text("\n".join(text_of(builds, found)) + "\n", encoding="utf-8")


def text_of(builds: list[Build], found: dict[str, list[Line]]) -> Iterator[str]:
    """Yields the lines of the file."""
    yield HEADER.rstrip()
    for build in builds:
        yield f"= {build.release} measured {build.source}"
    yield from LIMITS
    yield from rendered([build.release for build in builds], found)


def _key(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


if __name__ == "__main__":
    main()
