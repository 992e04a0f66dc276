# SPDX-License-Identifier: Apache-2.0
"""Runs models in another onnxruntime than the one that is installed, in a process of its own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kernels.generate import Build

USUAL: Final = "bBhHiIlLqQefd?"
"""The dtypes of numpy itself, by their characters."""

RUN: Final = """
import base64, json, sys
import numpy, onnxruntime
onnxruntime.set_default_logger_severity(4)

def read(value):
    kind, rest = value[0], value[1:]
    if kind == "list":
        return [read(item) for item in rest[0]]
    if kind == "object":
        return numpy.array(rest[1], object).reshape(rest[0])
    return numpy.frombuffer(base64.b64decode(rest[1]), kind).reshape(rest[0])

for line in open(sys.argv[1]):
    name, message, feeds = json.loads(line)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    told = ""
    print(json.dumps(name), end="\\t", flush=True)
    try:
        model = base64.b64decode(message)
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        told = "run: "
        if feeds is not None:
            session.run(None, {key: read(value) for key, value in feeds.items()})
        told = ""
    except Exception as error:
        told += str(error) or type(error).__name__
    print(json.dumps(told), flush=True)
"""


NO_ARRAY: Final = "No corresponding Numpy type"
"""What is said of outputs that were computed, and that numpy has no dtype for."""


class Job(NamedTuple):
    """A model, and inputs to run it with; None if they cannot be handed over, and a session has to do."""

    message: bytes
    feeds: Mapping[str, Any] | None


def ran(build: Build, jobs: Mapping[str, Job], folder: Path) -> dict[str, str]:
    """Returns what came of running models, by name: "" or an error; "crashed" for one with which the process ended."""
    told: dict[str, str] = {}
    while left := {name: job for name, job in jobs.items() if name not in told}:
        path = folder / "jobs.txt"
        with path.open("w") as file:
            for name, job in left.items():
                written = None if job.feeds is None else {key: _written(value) for key, value in job.feeds.items()}
                file.write(json.dumps([name, base64.b64encode(job.message).decode(), written]) + "\n")
        command = [sys.executable, "-c", RUN, str(path)]
        environment = {**os.environ, **build.environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            name, tab, error = line.partition("\t")
            if tab:
                what = json.loads(error) if error else "crashed"
                told[json.loads(name)] = "" if NO_ARRAY in what else what
        if not done.stdout:
            raise RuntimeError(done.stderr)
    return told


def can_be_written(value: Any) -> bool:
    """Returns whether an input can be handed over: arrays of numpy's own dtypes and of strings, and lists of them."""
    if isinstance(value, list):
        return all(map(can_be_written, value))
    return isinstance(value, np.ndarray | np.generic) and (value.dtype.char in USUAL or value.dtype.kind in "OUS")


def _written(value: Any) -> Sequence[Any]:
    """Returns an input as JSON has it."""
    if isinstance(value, list):
        return "list", [_written(item) for item in value]
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
        return "object", array.shape, texts
    return array.dtype.str, array.shape, base64.b64encode(array.tobytes()).decode()
