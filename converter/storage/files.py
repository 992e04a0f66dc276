# SPDX-License-Identifier: Apache-2.0
"""The disk under `modelfile`: files read at any position, and new files that appear whole or not at all."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from io import FileIO, RawIOBase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final, cast

from onnx_convert.errors import InvalidModelError
from onnx_convert.model.wire import HEADER, Piece, length
from onnx_convert.storage.splice import pour

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

WINDOW = 1 << 14
"""Bytes read at once on the way through headers."""


Identity = tuple[int, int, int, int]
"""Device, inode, size and time of the last change of a file."""


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_at(path: Path, identity: Identity) -> bool:
    with suppress(OSError):
        return _identity(path.stat()) == identity
    return False


def _check_regular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InvalidModelError("is a folder, not a file", where=str(path))
    if not stat.S_ISREG(mode):  # opening a pipe would wait, a device may never end
        raise InvalidModelError("is not a regular file", where=str(path))


def _open_without_waiting(path: str, flags: int) -> int:
    """Opens a file; a pipe that took its place is opened as well, and seen then."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class File:
    """A regular file, open, as a `Source`. InvalidModelError if it cannot be had or is shorter than it should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            _check_regular(path, path.stat().st_mode)
            self._file = FileIO(path, "rb", opener=_open_without_waiting)
            try:
                _check_regular(path, os.fstat(self._file.fileno()).st_mode)  # it may be another one by now
            except BaseException:
                self._file.close()
                raise
        except OSError as error:
            raise InvalidModelError(f"cannot be read: {error.strerror}", where=str(path)) from error
        except ValueError as error:  # a zero byte in the name
            raise InvalidModelError(f"cannot be read: {error}", where=repr(str(path))) from error
        self._status = os.fstat(self._file.fileno())
        self.size = self._status.st_size
        self._window = (b"", 0)

    @property
    def identity(self) -> Identity:
        """The mark that tells the file from all others, and from itself when it is written into."""
        return _identity(self._status)

    def is_at_its_place(self) -> bool:
        """Returns whether the file is still what lies at its path, as it was opened."""
        return _is_at(self.path, self.identity)

    def real_path(self) -> Path:
        """Returns where the file lies that was opened, all links followed."""
        descriptor = Path(f"/proc/self/fd/{self._file.fileno()}")
        return Path(os.readlink(descriptor) if descriptor.is_symlink() else os.path.realpath(self.path))

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
        """Raises InvalidModelError if somebody has written into the file since it was opened."""
        now = os.fstat(self._file.fileno())
        if (now.st_size, now.st_mtime_ns) != (self._status.st_size, self._status.st_mtime_ns):
            raise InvalidModelError("was changed by somebody else in the meantime", where=str(self.path))


class Closed:
    """A file as a `Source` that is open only while it is read: a model may have thousands of data files.

    InvalidModelError if it is another one by then, or was written into.
    """

    def __init__(self, path: Path, size: int, identity: Identity | None = None) -> None:
        self.path = path
        self.size = size
        self._identity = identity

    def is_at_its_place(self) -> bool:
        """Returns whether the file that was looked at first still lies at its path."""
        return self._identity is None or _is_at(self.path, self._identity)

    def _open(self) -> File:
        file = File(self.path)
        if self._identity is not None and file.identity != self._identity:
            file.close()
            raise InvalidModelError("was changed by somebody else in the meantime", where=str(self.path))
        return file

    def window(self, position: int) -> tuple[bytes, int]:
        return self.read(position, min(position + WINDOW, self.size)), position

    def read(self, start: int, stop: int) -> bytes:
        file = self._open()
        try:
            return file.read(start, stop)
        finally:
            file.close()

    def fileno(self) -> int | None:
        return None

    def opened(self) -> AbstractContextManager[File]:
        return closing(self._open())


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


def tells_case_apart(folder: Path) -> bool:
    """Returns whether files of a folder may have names that differ by case alone."""
    with TemporaryDirectory(dir=folder, prefix=f"{_TEMPORARY}case-") as made:
        return not Path(made).with_name(Path(made).name.upper()).exists()


def take_place(temporary: Path, path: Path) -> bool:
    """Puts a file that is written already in the place of another, whose permission bits it takes over; returns whether
    there was one. OSError says which file and why."""
    replaced = path.exists()
    try:
        if replaced:
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            with FileIO(temporary, "rb+") as file:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
    return replaced


Deliver = Callable[[Path, Iterable[Piece], Callable[[int], None]], int]


@contextmanager
def delivery() -> Iterator[Deliver]:
    """Puts files in their places together when the block ends, the last one last; none of them if anything fails.

    `deliver(path, pieces, tick)` writes a temporary file beside `path`, and returns its inode, which stays its own
    wherever it is moved. A file that is replaced hands on its permission bits, and only there the new bytes must have
    reached the disk before. OSError says which file and why.
    """
    waiting: list[tuple[Path, Path]] = []
    folders: list[Path] = []
    placed: list[Path] = []
    at_work = Path()
    swept: set[Path] = set()
    locks = ExitStack()

    def deliver(path: Path, pieces: Iterable[Piece], tick: Callable[[int], None]) -> int:
        nonlocal at_work
        at_work = path
        for folder in reversed([f for f in path.parents if not f.exists()]):
            folder.mkdir()
            folders.append(folder)
        if path.parent not in swept:
            swept.add(path.parent)
            _sweep(path.parent)
        temporary = path.parent / f"{_TEMPORARY}{os.urandom(8).hex()}"
        waiting.append((temporary, path))
        with FileIO(temporary, "xb") as file:
            _lock(file, locks)
            pour(pieces, file, tick)
            if path.exists():
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
                os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_ino

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
                with suppress(OSError):  # a folder that takes no files lets none go: what is told is the first error
                    temporary.unlink()
            for path in placed:
                with suppress(OSError):
                    path.unlink()
            for folder in reversed(folders):
                with suppress(OSError):
                    folder.rmdir()
        if isinstance(error, OSError):
            raise OSError(error.errno, f"cannot be written: {error.strerror}", str(at_work)) from error
        raise
    finally:
        locks.close()


@contextmanager
def aside(place: Path, write: Callable[[Path], object]) -> Iterator[Path]:
    """Yields a file that was written beside its place, under a name of its own, and is removed unless it has been moved
    by then; if its process is killed, whoever writes into the folder next removes it."""
    temporary = place.parent / f"{_TEMPORARY}{os.urandom(8).hex()}"
    try:
        write(temporary)
        with ExitStack() as locks:
            with FileIO(temporary) as file:
                _lock(file, locks)
            yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink()


_TEMPORARY: Final = ".onnx-convert-"
_IS_TEMPORARY: Final = re.compile(f"{re.escape(_TEMPORARY)}[0-9a-f]{{16}}").fullmatch
_STALE: Final = 60.0  # seconds for which a temporary file may be there before it is locked
_REMEMBERED: Final = 1000  # folders
_swept: dict[str, float] = {}  # when each was looked through


def _lock(file: FileIO, locks: ExitStack) -> None:
    """Locks a temporary file as long as its writer lives, whatever becomes of it, and of the file's own descriptor."""
    if fcntl is not None:
        held = os.dup(file.fileno())
        locks.callback(os.close, held)
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(folder: Path) -> None:
    """Removes temporary files of ours whose writer was killed: those that nobody holds a lock on.

    A folder is looked through only once it may hold new ones: it may have many files, and be written into for each.
    """
    now, place = time.monotonic(), os.path.abspath(folder)
    if fcntl is None or now - _swept.get(place, -_STALE) < _STALE:
        return
    _swept[place] = now
    while len(_swept) > _REMEMBERED:
        del _swept[next(iter(_swept))]
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _IS_TEMPORARY(entry.name):
                with suppress(OSError):
                    _remove_if_stale(Path(entry.path))


def _remove_if_stale(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or time.time() - status.st_mtime < _STALE:
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where the writer lives
        path.unlink()
    finally:
        os.close(descriptor)
