# SPDX-License-Identifier: Apache-2.0
"""A model that is to be run: what is in it, without its weights, and how evaluators get it.

A file is opened by onnxruntime itself, which finds external data beside it; nothing is copied. With more outputs than
it has, it is handed over as bytes, and the folder of its external data is named.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto

from onnx_convert.spec import opsets
from onnx_convert.storage import writer
from onnx_convert.storage.source import open_source
from onnx_convert.verification.evaluators import (
    ONNXRUNTIME,
    REFERENCE,
    LacksError,
    OnnxRuntime,
    Reference,
    all_nodes,
    first_line,
    foreign_dtypes,
    one_spelling,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

    from onnx_convert.verification.evaluators import Feeds

EVALUATORS = (ONNXRUNTIME, REFERENCE)

_SMALL: Final = 1 << 22  # elements of weights
_FEW: Final = 1000  # nodes


class Program:
    """A model, ready to run on one evaluator; `why` says why it is not onnxruntime."""

    def __init__(self, session: OnnxRuntime | Reference, why: str = "") -> None:
        self.evaluator = session.name
        self.why = why
        self._session = session

    def run(self, feeds: Feeds) -> list[Any]:
        """Returns the outputs in graph order. Raises RunError, and LacksError for a kernel that is missing."""
        return self._session.run(feeds)


class Subject:
    """An open model that is to be run: a path, bytes, or a message, read at the opsets of `stamps`."""

    def __init__(self, model: Any, stamps: Mapping[str, int] | None = None) -> None:
        canonical = {opsets.canonical_domain(domain): version for domain, version in (stamps or {}).items()}
        self.source = open_source(model, canonical)
        self.name = self.source.name
        file = self.source.file
        self.path = file.path if file is not None else None

    @property
    def proto(self) -> ModelProto:
        """The model, without the weights that lie in a file."""
        return self.source.proto

    @property
    def is_small(self) -> bool:
        """Whether the reference, which is slow and holds all weights, runs it in a moment."""
        weights = sum(math.prod(tensor.dims) for tensor in self.proto.graph.initializer)
        return weights <= _SMALL and len(self.proto.graph.node) <= _FEW

    def whole(self) -> ModelProto:
        """Returns the model with all its weights, external ones as well."""
        file = self.source.file
        if file is None:
            model = ModelProto()
            model.CopyFrom(self.proto)
        else:
            model = writer.materialise(file, self.proto)
        if self.path is not None:
            onnx.load_external_data_for_model(model, str(self.path.parent))
        return model

    def program(self, evaluators: Sequence[str] = EVALUATORS, more: Sequence[str] = ()) -> Program:
        """Returns the model on the first evaluator that takes it, with `more` values as outputs behind its own.

        Raises LacksError if none does.
        """
        why = ""
        for evaluator in evaluators:
            try:
                session = self._on_onnxruntime(more) if evaluator == ONNXRUNTIME else Reference(self._with(more))
                return Program(session, why)
            except LacksError as error:
                why = f"{why}; {error}" if why else str(error)
            except Exception as error:  # whatever onnxruntime says of a model that it does not load
                why = f"{why}; {first_line(error)}" if why else first_line(error)
        raise LacksError(why)

    def close(self) -> None:
        """Closes the file."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_onnxruntime(self, more: Sequence[str]) -> OnnxRuntime:
        if why := foreign_dtypes(self.proto):
            raise LacksError(why)
        folder = str(Path(self.path).resolve().parent) if self.path is not None else ""
        spelled_out = any(node.domain == "ai.onnx" for node in all_nodes(self.proto))
        if spelled_out or self.source.restamping is not None:  # it does not know that domain in subgraphs
            return OnnxRuntime(one_spelling(self._with(more)).SerializeToString())
        if self.path is not None and not more:
            return OnnxRuntime(str(self.path))
        return OnnxRuntime(self._serialised() + _outputs(more), folder=folder)

    def _serialised(self) -> bytes:
        file = self.source.file
        data: bytes = file.source.read(0, file.size) if file is not None else self.proto.SerializeToString()
        return data

    def _with(self, more: Sequence[str]) -> ModelProto:
        model = self.whole()
        model.MergeFromString(_outputs(more))
        return model


def _outputs(names: Sequence[str]) -> bytes:
    """Returns more outputs as the end of a serialised model: of a message that comes in parts, lists go on."""
    if not names:
        return b""
    more: bytes = ModelProto(graph=GraphProto(output=[ValueInfoProto(name=n) for n in names])).SerializeToString()
    return more
