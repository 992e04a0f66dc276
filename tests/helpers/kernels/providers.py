# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of onnxruntime's providers for graphics cards anew.

    python tests/helpers/kernels/providers.py cuda [FOLDER]      # asks each onnxruntime-gpu; some 5 GB of wheels
    python tests/helpers/kernels/providers.py directml PAGE...   # reads docs/OperatorKernels.md, RELEASE=PATH each

What a wheel with CUDA lists is asked on any machine, with stand-ins for the libraries of the card. That with DirectML
is for Windows alone; its list is the one that is published.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from kernels import listed, stand_ins  # noqa: E402
from kernels.generate import NUMPY_2, TABLE  # noqa: E402
from kernels.table import Kernel, rendered  # noqa: E402
from onnx_convert.target import runtimes  # noqa: E402

GPU: Final = {
    "1.16": "1.16.3", "1.17": "1.17.1", "1.18": "1.18.1", "1.19": "1.19.2", "1.20": "1.20.2", "1.21": "1.21.1",
    "1.22": "1.22.0", "1.23": "1.23.2", "1.24": "1.24.4", "1.25": "1.25.1", "1.26": "1.26.0", "1.27": "1.27.0",
    "1.28": "1.28.0", "1.29": "1.29.0", "1.30": "1.30.0", "1.31": "1.31.1",
}  # fmt: skip
"""The releases of onnxruntime-gpu that list their kernels: 1.15 does not, and 1.32 has no wheel."""

PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64")
NEVER_ENDS: Final = 2**31 - 1

ASK: Final = """
import json, sys
from onnxruntime.capi import onnxruntime_pybind11_state as state
print(json.dumps([
    [k.provider, k.domain, k.op_name, *k.version_range, {n: sorted(t) for n, t in k.type_constraints.items()}]
    for k in state.get_all_opkernel_def()
]))
"""

HEADER: Final = """\
# SPDX-License-Identifier: Apache-2.0
# The kernels of onnxruntime's {0} provider. Nodes without one run on the CPU; operators with a function body that have
# no kernel on the CPU either count as implemented, by what their body consists of. Written by
# tests/helpers/kernels/providers.py; how to read it says converter/target/kernels.py.
"""


def gpu_kernels(release: str, folder: Path) -> dict[str, list[Kernel]]:
    """Returns the kernels that an onnxruntime-gpu lists, by provider; what it answered stays in the folder."""
    answers = folder / f"gpu-{release}.json"
    if not answers.exists():
        with tempfile.TemporaryDirectory(dir=folder) as home:
            answers.write_text(_ask(release, Path(home)))
    found: dict[str, list[Kernel]] = {}
    for provider, *entry in json.loads(answers.read_text()):
        found.setdefault(provider, []).append(Kernel(*entry))
    return found


def _ask(release: str, place: Path) -> str:
    """Returns what an onnxruntime-gpu lists, as JSON."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--target", place]
    version = ["--python-version", python, *platforms, f"onnxruntime-gpu=={GPU[release]}"]
    subprocess.run([*pip, *version], check=True, capture_output=True)
    numpy = "numpy" if tuple(map(int, release.split("."))) >= NUMPY_2 else "numpy<2"
    subprocess.run([*pip, numpy], check=True, capture_output=True)
    libraries = sorted((place / "onnxruntime" / "capi").glob("libonnxruntime_providers_*.so"))
    stand_ins.made(libraries, place / "stand-ins")
    environment = {**os.environ, "PYTHONPATH": str(place), "LD_LIBRARY_PATH": str(place / "stand-ins")}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def cuda_text(folder: Path) -> Iterator[str]:
    """Yields the lines of the table of CUDA."""
    found = {}
    for release in GPU:
        kernels = gpu_kernels(release, folder)
        row = runtimes.find(f"onnxruntime@{release}")
        assert row.opset is not None
        assert row.ml is not None
        mine, others = kernels["CUDAExecutionProvider"], kernels["CPUExecutionProvider"]
        found[release] = list(listed.lines(mine, others, row.opset, row.ml))
    yield HEADER.format("CUDA").rstrip()
    for release, version in GPU.items():
        yield f"= {release} measured onnxruntime-gpu {version}, the list that it gives"
    yield from rendered(list(GPU), found)


def published(page: str, provider: str) -> list[Kernel]:
    """Returns the kernels of a provider that docs/OperatorKernels.md lists. There, `7+` is a version that has a kernel
    and is followed by others of its own, and a line without a name is of the operator above it."""
    _, _, section = page.partition(f"## Operators implemented by {provider}")
    found, domain, operator = [], "", ""
    for line in section.partition("\n## ")[0].splitlines():
        if heading := re.match(r"\|\*\*Operator Domain:\*\* \*(.+?)\*", line):
            domain = "" if heading[1] == "ai.onnx" else heading[1]
            continue
        row = re.match(r"\|(\w*)\|.*\|(\d+\+|\d+|\[\d+, \d+\])\|(.*)\|$", line)
        if row is None:
            continue
        operator = row[1] or operator
        first, *last = map(int, re.findall(r"\d+", row[2]))
        end = NEVER_ENDS if row[2].endswith("+") else last[0] if last else first
        types = {name: kinds.strip().split(", ") for name, kinds in re.findall(r"\*\*(\w+)\*\* = ([^<]*)", row[3])}
        found.append(Kernel(domain, operator, first, end, types))
    return found


def directml_text(pages: dict[str, Path]) -> Iterator[str]:
    """Yields the lines of the table of DirectML, from pages by release."""
    found = {}
    for release, path in pages.items():
        page = path.read_text(encoding="utf-8")
        row = runtimes.find(f"onnxruntime@{release}")
        assert row.opset is not None
        assert row.ml is not None
        mine, others = published(page, "DmlExecutionProvider"), published(page, "CPUExecutionProvider")
        found[release] = list(listed.lines(mine, others, row.opset, row.ml))
    yield HEADER.format("DirectML").rstrip()
    for release in pages:
        yield f"= {release} documented docs/OperatorKernels.md of microsoft/onnxruntime, release {release}"
    yield from rendered(list(pages), found)


def main() -> None:
    """Writes the table that is named."""
    provider, *rest = sys.argv[1:]
    table = TABLE.with_name(f"onnxruntime-{provider}.txt")
    if provider == "directml":
        pages = {release: Path(path) for release, _, path in (word.partition("=") for word in rest)}
        text = "\n".join(directml_text(pages))
    elif shutil.which("gcc") is None:
        sys.exit("gcc is needed to make the stand-ins")
    else:
        with tempfile.TemporaryDirectory() as home:
            folder = Path(rest[0] if rest else home)
            folder.mkdir(parents=True, exist_ok=True)
            text = "\n".join(cuda_text(folder))
    table.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
