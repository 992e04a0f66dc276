# SPDX-License-Identifier: Apache-2.0
"""Protobuf's wire format, as far as it takes to lift the payloads out of an ONNX model and to put them back.

A model is a message: fields that each begin with a tag, and, where they hold a message, a text or bytes, go on with
their length. So whoever looks for the weights only reads headers and steps over the rest. `records` does that step,
`forms.rewrite` takes it down to every tensor. This room opens no file: it reads through a `Source`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADER = 24
"""No tag and length (or tag and number) together are longer: two varints of at most 10 bytes."""


VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are no protobuf message; the text says where."""


class Source(Protocol):
    """Bytes that can be read at any position: a file, or memory."""

    size: int

    def window(self, position: int) -> tuple[bytes, int]:
        """Returns some bytes and the position of their first: at least HEADER bytes from `position`, or all up to the
        end."""

    def read(self, start: int, stop: int) -> bytes:
        """Returns exactly these bytes."""

    def fileno(self) -> int | None:
        """Returns what the kernel can copy from, at the same positions."""

    def opened(self) -> AbstractContextManager[Source]:
        """Returns the same bytes, held open for a long reading."""


class Memory:
    """Bytes at hand, as a `Source`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def window(self, position: int) -> tuple[bytes, int]:
        return self.data, 0

    def read(self, start: int, stop: int) -> bytes:
        return self.data[start:stop]

    def fileno(self) -> int | None:
        return None

    def opened(self) -> AbstractContextManager[Source]:
        return nullcontext(self)


class Span(NamedTuple):
    """A run of bytes of a source, to be copied when the time comes."""

    source: Source
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


Piece = bytes | Span
"""A message is written as a list of these, one after the other."""


def length(pieces: Iterable[Piece]) -> int:
    return sum(map(len, pieces))


def joined(pieces: Iterable[Piece]) -> bytes:
    return b"".join(p if isinstance(p, bytes) else p.source.read(p.start, p.stop) for p in pieces)


@lru_cache(maxsize=4096)
def varint(number: int) -> bytes:
    """Returns the number (not negative) in groups of seven bits, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


@lru_cache(maxsize=4096)
def prefix(tag: int, size: int) -> bytes:
    """Returns what stands before a field of so many bytes."""
    return varint(tag) + varint(size)


def text_value(text: str) -> bytes:
    """Returns a text as it stands behind its tag."""
    data = text.encode()
    return varint(len(data)) + data


def read_varint(buffer: bytes, index: int) -> tuple[int, int]:
    """Returns the number at `index` and the index behind it; IndexError where the buffer ends first."""
    number = 0
    for shift in range(0, 70, 7):
        byte = buffer[index]
        index += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, index
    raise WireError("a number of more than 10 bytes")


def records(source: Source, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields the fields of the message at [start, stop): tag, and where the field, its value and the next field begin.

    WireError where this is no message. Values are not looked at; a window never outgrows a few headers' worth.
    """
    position = start
    buffer, base = source.window(position)
    last = base + len(buffer) - HEADER  # up to here a header lies in the window as a whole
    try:
        while position < stop:
            if position > last:
                buffer, base = source.window(position)
                last = max(base + len(buffer) - HEADER, position)
            index = position - base
            tag = buffer[index]
            index += 1
            if tag > 127:
                tag, index = read_varint(buffer, index - 1)
            if tag < 8:
                raise WireError("a field without a number")
            wire = tag & 7
            if wire == BYTES:
                size = buffer[index]
                index += 1
                if size > 127:
                    size, index = read_varint(buffer, index - 1)
                end = base + index + size
            elif wire == VARINT:
                end = base + read_varint(buffer, index)[1]
            elif wire == FIXED32:
                end = base + index + 4
            elif wire == FIXED64:
                end = base + index + 8
            else:
                raise WireError(f"a field of wire type {wire}, which ONNX does not know")
            if end > stop:
                if stop == source.size:
                    raise WireError(f"truncated: the bytes end at {stop}, this field would end at {end}")
                raise WireError(f"a field of {end - position} bytes, past the end of its message at {stop}")
            yield tag, position, base + index, end
            position = end
    except IndexError:
        raise WireError(
            f"truncated: the bytes end at {source.size}, inside a field that begins at {position}"
        ) from None
    except WireError as error:
        raise WireError(f"{error} (byte {position})") from None
