# SPDX-License-Identifier: Apache-2.0
"""The disk under `modelfile`: files read at any position, and new files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.wire import HEADER, Piece, length
from onnx_convert.storage.splice import pour

WINDOW = 1 << 14
"""Bytes read at once on the way through headers."""


class File:
    """A regular file, open, as a `Source`. InvalidModelError if it cannot be had or is shorter than it should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                raise InvalidModelError("is a folder, not a file", where=str(path))
            if not stat.S_ISREG(mode):  # opening a pipe would wait, a device may never end
                raise InvalidModelError("is no regular file", where=str(path))
            self._file = FileIO(path, "rb")
        except OSError as error:
            raise InvalidModelError(f"cannot be read: {error.strerror}", where=str(path)) from error
        except ValueError as error:  # a zero byte in the name
            raise InvalidModelError(f"cannot be read: {error}", where=repr(str(path))) from error
        self._status = os.fstat(self._file.fileno())
        self.size = self._status.st_size
        self._window = (b"", 0)

    def window(self, position: int) -> tuple[bytes, int]:
        buffer, base = self._window
        end = base + len(buffer)
        if not (base <= position <= end and (end - position >= HEADER or end == self.size)):
            self._window = self.read(position, min(position + WINDOW, self.size)), position
        return self._window

    def read(self, start: int, stop: int) -> bytes:
        parts: list[bytes] = []
        while start < stop:
            if hasattr(os, "pread"):
                part = os.pread(self._file.fileno(), stop - start, start)
            else:
                self._file.seek(start)
                part = self._file.read(stop - start) or b""
            if not part:
                raise InvalidModelError(f"ends at byte {start}, {stop - start} bytes early", where=str(self.path))
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def fileno(self) -> int | None:
        return self._file.fileno()

    def opened(self) -> AbstractContextManager[File]:
        return nullcontext(self)

    def close(self) -> None:
        self._file.close()

    def check_unchanged(self) -> None:
        """InvalidModelError if somebody has written into the file since it was opened."""
        now = os.fstat(self._file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self._status.st_size, self._status.st_mtime_ns):
            raise InvalidModelError("was changed by somebody else in the meantime", where=str(self.path))


class Closed:
    """A file as a `Source` that is open only while it is read: a model may have thousands of data files."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size

    def window(self, position: int) -> tuple[bytes, int]:
        return self.read(position, min(position + WINDOW, self.size)), position

    def read(self, start: int, stop: int) -> bytes:
        file = File(self.path)
        try:
            return file.read(start, stop)
        finally:
            file.close()

    def fileno(self) -> int | None:
        return None

    def opened(self) -> AbstractContextManager[File]:
        return closing(File(self.path))


class _Comparison(RawIOBase):
    """A stream that takes what is in a file already, and raises _Differs at the first other byte."""

    def __init__(self, file: FileIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(data)
        if self._file.read(size) != bytes(data):
            raise _Differs
        return size


class _Differs(Exception):
    pass


def holds(path: Path, pieces: list[Piece]) -> bool:
    """Returns whether a file holds these bytes already."""
    if not path.is_file() or path.stat().st_size != length(pieces):
        return False
    with FileIO(path, "rb") as file:
        try:
            pour(pieces, cast("BinaryIO", _Comparison(file)), lambda _: None)
        except _Differs:
            return False
    return True


Deliver = Callable[[Path, Iterable[Piece], Callable[[int], None]], None]


@contextmanager
def delivery() -> Iterator[Deliver]:
    """Files that take their places together when the block ends, the last one last; none of them if anything fails.

    `deliver(path, pieces, tick)` writes a temporary file beside `path`. A file that is replaced hands on its
    permission bits, and only there the new bytes must have reached the disk before. OSError says which file and why.
    """
    waiting: list[tuple[Path, Path]] = []
    folders: list[Path] = []
    placed: list[Path] = []
    at_work = Path()

    def deliver(path: Path, pieces: Iterable[Piece], tick: Callable[[int], None]) -> None:
        nonlocal at_work
        at_work = path
        for folder in reversed([f for f in path.parents if not f.exists()]):
            folder.mkdir()
            folders.append(folder)
        temporary = path.parent / f".onnx-convert-{os.urandom(8).hex()}"
        waiting.append((temporary, path))
        with FileIO(temporary, "xb") as file:
            pour(pieces, file, tick)
            if path.exists():
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
                os.fsync(file.fileno())

    try:
        yield deliver
        for temporary, path in waiting:
            at_work = path
            if not path.exists():
                placed.append(path)
            os.replace(temporary, path)
    except BaseException as error:
        if not placed or waiting[-1][0].exists():  # else an interrupt came when all was in its place
            for temporary, _ in waiting:
                temporary.unlink(missing_ok=True)
            for path in placed:
                path.unlink(missing_ok=True)
            for folder in reversed(folders):
                with suppress(OSError):
                    folder.rmdir()
        if isinstance(error, OSError):
            raise OSError(error.errno, f"cannot be written: {error.strerror}", str(at_work)) from error
        raise
