# SPDX-License-Identifier: Apache-2.0
"""Moves the pieces of a message to a file or stream; large ones go from file to file inside the kernel."""

from __future__ import annotations

import os
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO, cast

from onnx_convert.model.wire import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from onnx_convert.model.wire import Piece, Source


BUFFER = 2 << 20
"""Bytes moved at once where the kernel does not copy by itself: few enough to stay in the processor's cache."""


PAGE = 4096
"""The kernel copies well, or shares what there is, where source and target lie alike within their pages; where they do
not, it is slower than a buffer."""


KERNEL_CHUNK = 128 << 20
"""Bytes that the kernel copies in one call: the grain of progress, and of an interrupt."""


def pour(pieces: Iterable[Piece], target: BinaryIO | FileIO, tick: Callable[[int], None]) -> None:
    """Writes the pieces at the target's position. Large ones of a file go from file to file inside the kernel."""
    pending: list[bytes] = []
    waiting = 0
    for piece in pieces:
        if isinstance(piece, Span) and len(piece) > 1 << 16:
            _write(target, b"".join(pending), tick)
            pending, waiting = [], 0
            _copy(piece, target, tick)
            continue
        pending.append(piece if isinstance(piece, bytes) else piece.source.read(piece.start, piece.stop))
        waiting += len(piece)
        if waiting > 1 << 20:
            _write(target, b"".join(pending), tick)
            pending, waiting = [], 0
    _write(target, b"".join(pending), tick)


def _write(target: BinaryIO | FileIO, data: bytes, tick: Callable[[int], None]) -> None:
    view = memoryview(data)
    while view:
        count = target.write(view)  # a raw file may take less than all, and None says that it takes nothing now
        if count is None:
            raise BlockingIOError("the output does not wait for its reader")
        tick(count)
        view = view[count:]


def _copy(span: Span, target: BinaryIO | FileIO, tick: Callable[[int], None]) -> None:
    with span.source.opened() as source:
        _copy_from(source, span, target, tick)


def _copy_from(source: Source, span: Span, target: BinaryIO | FileIO, tick: Callable[[int], None]) -> None:
    start = span.start
    descriptor = source.fileno()
    kernel_copy = cast("Callable[[int, int, int, int], int] | None", getattr(os, "copy_file_range", None))
    if descriptor is not None and kernel_copy is not None and isinstance(target, FileIO):
        try:
            alike = (start - target.tell()) % PAGE == 0
            while alike and start < span.stop:
                count = kernel_copy(descriptor, target.fileno(), min(span.stop - start, KERNEL_CHUNK), start)
                if count == 0:
                    break
                tick(count)
                start += count
        except OSError:
            pass  # other file systems, old kernels, sandboxes; if the disk is the matter, the plain way will say so
    while start < span.stop:
        stop = min(start + BUFFER, span.stop)
        _write(target, source.read(start, stop), tick)
        start = stop
