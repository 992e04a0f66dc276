# SPDX-License-Identifier: Apache-2.0
"""Sees to standard streams that are closed, and to their other names."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

STDOUT_NAMES: Final = frozenset(("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"))
"""Other names of stdout: as a file, one of them would be replaced, in `/dev` at that."""


def open_those_that_are_closed() -> None:
    """Opens the null device for each standard stream that is closed: a model file must not get its number, and be
    written into by whoever prints."""
    for number, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        try:
            os.fstat(number)
        except OSError:
            if os.open(os.devnull, os.O_RDWR) != number:  # the lowest number that is free is taken
                continue
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115 - stays open as the process's stream


@contextlib.contextmanager
def left_by_its_reader(stream: IO[str]) -> Iterator[None]:
    """Prints to a stream whose reader may be gone, as that of `| head`: what is left to say goes nowhere then, and is
    no failure of what was done."""
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
