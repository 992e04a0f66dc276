# SPDX-License-Identifier: Apache-2.0
"""Opsets that are the end of whoever looks at them, as a native crash or a hang would be."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path


class Dies:
    """An opset at the sight of which the process dies."""

    def __index__(self) -> int:  # noqa: PLE0305 - it does not come to that
        os._exit(11)


class Killed:
    """An opset at the sight of which the process is killed, as by a system that runs out of memory."""

    def __index__(self) -> int:
        os.kill(os.getpid(), 9)
        return 13


class Hangs:
    """An opset that takes for ever."""

    def __index__(self) -> int:
        time.sleep(600)
        return 13


class Deaf:
    """An opset that takes for ever, whatever the process is told: as native code, which looks at no signal."""

    def __index__(self) -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        return 13


class Holds:
    """An opset that takes for ever in native code that keeps the interpreter to itself; it says when it begins."""

    def __init__(self, begun: str) -> None:
        self.begun = begun

    def __index__(self) -> int:
        Path(self.begun).write_text(str(os.getpid()))
        ctypes.PyDLL(None).sleep(600)
        return 13


class Unpicklable:
    """What kills the process that receives it, before it can say that it has."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (11,)


class Imported:
    """An opset for those who have imported all that is heavy before they receive it."""

    def __reduce__(self) -> tuple[object, ...]:
        return _thirteen, ()


def _thirteen() -> int:
    return 13 if "onnx_convert.api" in sys.modules else 0


def slowly(done: int, total: int, name: str) -> None:
    """Takes for ever over the first bytes that are written."""
    time.sleep(600)
