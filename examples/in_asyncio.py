# SPDX-License-Identifier: Apache-2.0
"""A conversion in a service: it runs in a thread, tells how far it is, and can be cancelled; nothing half done is left.

python examples/in_asyncio.py
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

from make_legacy_add import make

import onnx_convert


class Cancelled(Exception):
    """Raised where the saving asks how it goes on."""


def convert(model: object, result: Path, cancelled: threading.Event) -> onnx_convert.Report:
    """Converts and saves, until somebody cancels it."""

    def progress(done: int, total: int, name: str) -> None:
        print(f"{name}: {done} of {total} bytes")
        if cancelled.is_set():
            raise Cancelled

    with onnx_convert.convert(model, to=14) as conversion:
        return conversion.save(result, progress=progress)


async def serve(folder: Path) -> None:
    """Converts twice; somebody cancels the second time."""
    cancelled = threading.Event()
    report = await asyncio.to_thread(convert, make(), folder / "a.onnx", cancelled)
    print(f"opset {report.opsets_after['ai.onnx']}")
    cancelled.set()
    try:
        await asyncio.to_thread(convert, make(), folder / "b.onnx", cancelled)
    except Cancelled:
        print("cancelled")


def main() -> None:
    """Serves, and looks at what is there then."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(Path(folder)))
        print("there is", *(path.name for path in Path(folder).iterdir()))


if __name__ == "__main__":
    main()
