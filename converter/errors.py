# SPDX-License-Identifier: Apache-2.0
"""One tree of errors. Each carries its facts as fields; the text is made from them.

`exit_code` is what the command line ends with: 1 refused, 2 usage, 4 unreadable or invalid model; 3, of results that
differ from their source or cannot be compared, has no error here. `InternalError` is a fault of an adapter, never of
the model, and ends with 70 (EX_SOFTWARE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx_convert.report import Refusal, Report


class OnnxConvertError(Exception):
    """The base of the errors that this package raises on purpose. Can be pickled, for process pools."""

    exit_code = 70

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[OnnxConvertError], args: tuple[object, ...], fields: dict[str, object]) -> OnnxConvertError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(fields)
    return error


class UsageError(OnnxConvertError):
    """The request makes no sense, whatever the model: an opset that does not exist, options that contradict."""

    exit_code = 2


class InvalidModelError(OnnxConvertError):
    """The model cannot be read, or breaks the ONNX specification where conversion has to rely on it."""

    exit_code = 4

    def __init__(self, why: str, *, where: str = "") -> None:
        self.why = why
        self.where = where
        super().__init__(f"{where}: {why}" if where else why)


class RefusedError(OnnxConvertError):
    """The model cannot be carried to the target with the same meaning; nothing was written or changed.

    Holds every refusal, and the nearest opset on the way that was found reachable by planning it (None: only the
    opset that the model has). `also` are opsets of other domains that have to be asked for with it.
    """

    exit_code = 1

    def __init__(
        self,
        refusals: Sequence[Refusal],
        report: Report,
        nearest: int | None = None,
        also: Mapping[str, int] | None = None,
    ) -> None:
        self.refusals = tuple(refusals)
        self.report = report
        self.nearest = nearest
        self.also = dict(also or {})
        first = self.refusals[0]
        more = f" (and {len(self.refusals) - 1} more)" if len(self.refusals) > 1 else ""
        super().__init__(f"{first}{more}")


class InternalError(OnnxConvertError):
    """A rewrite does not hold: a bug of this project, or of `author`. Names the adapter and the node."""

    exit_code = 70

    def __init__(self, why: str, *, adapter: str = "", node: str = "", author: str = "onnx-convert") -> None:
        self.why = why
        self.adapter = adapter
        self.node = node
        self.author = author
        by = f" (adapter {adapter}, node {node!r})" if adapter else ""
        super().__init__(f"{why}{by}; this is a bug of {author}, please report it")


def ending(error: Exception) -> tuple[str, int]:
    """Returns what to say of an error, and the exit code that goes with it: of ours, of the system's, or of a bug."""
    if isinstance(error, OnnxConvertError):
        return str(error), error.exit_code
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return (f"{error.filename}: {reason}" if error.filename is not None else reason), InvalidModelError.exit_code
    if isinstance(error, MemoryError):
        return "the memory does not suffice", InvalidModelError.exit_code
    if isinstance(error, ImportError) and not (error.name or "").startswith("onnx_convert"):
        return f"the installation is not complete: {error} (pip check tells more)", InvalidModelError.exit_code
    bug = InternalError(f"{type(error).__name__}: {error}")
    return str(bug), bug.exit_code
