# SPDX-License-Identifier: Apache-2.0
"""What tests of many models share: one of the models, and a conversion of many within the process."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import onnx

import onnx_convert

SOFTMAX = "(float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }"


class Here(Executor):
    """Does everything at once, in this process."""

    def submit(self, fn: Any, /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **more))
        return future


def converted(models: Any, output: Path, to: int = 13, **more: Any) -> dict[str, str]:
    """Converts in this process; returns the statuses by name."""
    with onnx_convert.convert_many(models, to=to, output=output, executor=Here(), **more) as batch:
        return {outcome.name: outcome.status for outcome in batch}


def opset(path: Path) -> int:
    return int(onnx.load(path, load_external_data=False).opset_import[0].version)
