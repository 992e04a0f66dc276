# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of what OpenVINO's frontend and OpenCV's importer know of ONNX's operators anew.

    python tests/helpers/kernels/importers.py openvino [FOLDER]
    python tests/helpers/kernels/importers.py opencv [FOLDER]

Each wheel reads models of one node. What it says does not exist there is missing; everything else counts as known, also
what it refuses for another reason, such as a size that such a model does not state.
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

import onnx  # noqa: E402

from kernels.generate import TABLE  # noqa: E402
from kernels.probes import Probe, probes  # noqa: E402
from kernels.table import Line, rendered  # noqa: E402
from onnx_convert.spec import opsets  # noqa: E402


class Importer(NamedTuple):
    """What reads models: its distribution and the others that it needs, the wheel of each release, and the code that
    reads a message, whose error has one of `unknown` where the operator does not exist, or cannot be read for what it
    is: one with a body, or of sequences."""

    title: str
    distributions: tuple[str, ...]
    releases: dict[str, str]
    read: str
    unknown: tuple[str, ...]
    domains: tuple[str, ...]


IMPORTERS: Final = {
    "openvino": Importer(
        "OpenVINO's ONNX frontend",
        ("openvino", "openvino-telemetry"),
        {"2023.3": "2023.3.0", "2024.6": "2024.6.0", "2025.4": "2025.4.1", "2026.4": "2026.4.1"},
        "import openvino as ov\ncore = ov.Core()\nread = core.read_model",
        ("unsupported operations", "does not support the following ONNX operations", "No conversion rule"),
        ("", "ai.onnx.ml"),
    ),
    "opencv": Importer(
        "OpenCV's ONNX importer",
        ("opencv-python-headless",),
        {"4.6": "4.6.0.66", "4.8": "4.8.1.78", "4.10": "4.10.0.84", "4.12": "4.12.0.88"},
        "import cv2, numpy\nread = lambda m: cv2.dnn.readNetFromONNX(numpy.frombuffer(m, numpy.uint8))",
        ("Can't create layer", "'Graph' is not supported", "typeProto.has_tensor_type()"),
        ("",),
    ),
}  # fmt: skip

ASK: Final = """
import base64, json, sys
{}
for line in open(sys.argv[1]):
    index, message = json.loads(line)
    print(index, end="\\t", flush=True)
    try:
        read(base64.b64decode(message))
        told = ""
    except Exception as error:
        told = " ".join(str(error).split()) or type(error).__name__
    print(json.dumps(told), flush=True)
"""


def questions(importer: Importer) -> list[Probe]:
    """Returns what is asked: one probe of each version of an operator, since whether it exists does not depend on
    types; every input of a size."""
    found: dict[tuple[str, str, int], Probe] = {}
    for probe in probes():
        if probe.domain in importer.domains:
            found.setdefault((probe.domain, probe.operator, probe.version), probe)
    return [probe._replace(message=_sized(probe.message)) for probe in found.values()]


def _sized(message: bytes) -> bytes:
    """Returns a model whose inputs have sizes, without which some do not look at the node at all."""
    model = onnx.load_model_from_string(message)
    for value in (*model.graph.input, *model.graph.output):
        if value.type.WhichOneof("value") == "tensor_type" and not value.type.tensor_type.HasField("shape"):
            for size in (1, 1, 2, 2):
                value.type.tensor_type.shape.dim.add().dim_value = size
    return model.SerializeToString()


def answers(importer: Importer, release: str, asking: list[Probe], folder: Path) -> list[str]:
    """Returns what came of each question, "crashed" where the process ended."""
    place, numpy = folder / f"{importer.distributions[0]}-{release}", "numpy<2"
    if importer.distributions[0] == "openvino" and tuple(map(int, release.split("."))) >= (2025, 0):
        numpy = "numpy"
    if not place.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--target", place]
        first, *others = importer.distributions
        wheels = [f"{first}=={importer.releases[release]}", *others, numpy]
        subprocess.run([*pip, *wheels], check=True, capture_output=True)
    told: dict[int, str] = {}
    path = folder / f"{importer.distributions[0]}.txt"
    while len(told) < len(asking):
        left = [[i, base64.b64encode(p.message).decode()] for i, p in enumerate(asking) if i not in told]
        path.write_text("\n".join(map(json.dumps, left)))
        done = subprocess.run(
            [sys.executable, "-c", ASK.format(importer.read), path],
            env={**os.environ, "PYTHONPATH": str(place)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.stdout:
            raise RuntimeError(done.stderr)
        for line in done.stdout.splitlines():
            index, tab, error = line.partition("\t")
            if tab and index.isdecimal():
                told[int(index)] = json.loads(error) if error else "crashed"
    return [told[index] for index in range(len(asking))]


def lines_of(importer: Importer, asking: list[Probe], told: list[str]) -> Iterator[Line]:
    """Yields the versions of operators that are known; those before the first that is asked for are if that is."""
    known = {("", "Constant", version) for version in opsets.history("Constant", "")}
    for probe, error in zip(asking, told, strict=True):
        if not any(part in error for part in importer.unknown):
            known.add((probe.domain, probe.operator, probe.version))
    asked: dict[tuple[str, str], int] = {}
    for probe in asking:
        asked.setdefault((probe.domain, probe.operator), probe.version)
    for (domain, operator), first in asked.items():
        if (domain, operator, first) in known:
            known |= {(domain, operator, version) for version in opsets.history(operator, domain) if version < first}
    yield from (Line(*key, 0, 0, "?") for key in sorted(known))


def text_of(importer: Importer, folder: Path) -> Iterator[str]:
    """Yields the lines of the file."""
    asking = questions(importer)
    found = {
        release: list(lines_of(importer, asking, answers(importer, release, asking, folder)))
        for release in importer.releases
    }
    yield "# SPDX-License-Identifier: Apache-2.0"
    yield f"# The operators that {importer.title} knows, whatever their types. Written by"
    yield "# tests/helpers/kernels/importers.py; how to read it says converter/target/kernels.py."
    for release, version in importer.releases.items():
        yield f"= {release} measured {importer.distributions[0]} {version}, models of one node of each operator"
    yield from rendered(list(importer.releases), found)


def main() -> None:
    """Asks all releases of the importer that is named, and writes its table."""
    name, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:
        folder = Path(rest[0] if rest else home)
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join(text_of(IMPORTERS[name], folder))
    TABLE.with_name(f"{name}.txt").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
