# SPDX-License-Identifier: Apache-2.0
"""Ends the program on signals as an interrupt from the keyboard does."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ends on SIGTERM and SIGHUP as on Ctrl-C, cleaning up; signals that somebody ignores or handles stay theirs."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    taken = []
    with contextlib.suppress(ValueError):  # not the main thread
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
