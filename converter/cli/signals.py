# SPDX-License-Identifier: Apache-2.0
"""Ends the program on signals as an interrupt from the keyboard does, and when it can stand it."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDING: Final = ("SIGINT", "SIGTERM", "SIGHUP")


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Lets what would end the program wait until compiled code has been imported, some of which does not survive it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [getattr(signal, name) for name in _ENDING])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ends on SIGTERM and SIGHUP as on Ctrl-C, cleaning up; signals that somebody ignores or handles stay theirs."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in _ENDING[1:] if hasattr(signal, name)]
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
