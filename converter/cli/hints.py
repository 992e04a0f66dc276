# SPDX-License-Identifier: Apache-2.0
"""Tells people with the habits of other tools what they mean here: options of other names, a second file name."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

_OPSET: Final = frozenset(
    "-t --opset --opset-version --target --target-opset --target-opset-version --target-version --to-opset".split()
)
_RUNTIME: Final = frozenset("--runtime --target-runtime --backend --platform --device".split())
_OUTPUT: Final = frozenset("--out --outfile --output-file --output-model --output-model-path --output-path".split())
_INPUT: Final = frozenset("-i -m --input --input-file --input-model --input-model-path --model --model-path".split())
_COMMANDS: Final = frozenset("check convert describe help info inspect list run show surgeon version upgrade".split())
_SIMPLIFIERS: Final = (
    "--overwrite-input-shape --dynamic-input-shape --input-shapes --skip-optimization --skip-optimizer "
    "--skip-fuse-bn --skip-shape-inference --skip-constant-folding --skip-fusion-patterns --no-constant-folding "
    "--no-large-tensor --no-shape-infer --fold-constants --outputs --dtype --fp16 --int8 --model-check"
)
_RUNNERS: Final = "--onnxrt --trt --tf --providers --execution-providers --atol --rtol --save-outputs"
_SAME: Final = {
    **dict.fromkeys(["-n", "--dry-run", "--dryrun", "--no-act"], "--check plans and writes nothing"),
    **dict.fromkeys(["--inspect", "--info", "--describe"], "without --to, a model is described"),
    **dict.fromkeys(["-y", "--yes", "--no-input"], "nothing is asked: leave it out"),
    **dict.fromkeys(["-r", "--recursive", "--glob"], "folders and patterns are gone through without: leave it out"),
    **dict.fromkeys(["--format", "--porcelain"], "the report as data is --json"),
    **dict.fromkeys(["--fix", "--write", "--apply"], "--in-place replaces the model itself"),
    **dict.fromkeys(["--ir", "--ir-v", "--onnx-ir-version"], "the IR version is given by --ir-version"),
    **dict.fromkeys(_SIMPLIFIERS.split(), "the opset is all that is changed here: nothing is simplified, cast or cut"),
    **dict.fromkeys(
        _RUNNERS.split(),
        "--verify runs source and result; what a runtime loads is said by --for",
    ),
    "--overwrite": "-f replaces a file that is no ONNX model; ONNX models are replaced anyway",
    "--force-overwrite": "-f replaces a file that is no ONNX model; ONNX models are replaced anyway",
    "--load-inputs": "the inputs of --verify are given by --inputs",
    "--check-numbers": "--verify compares what source and result compute",
    "--test-input-shape": "--input-shape x:1,3,224,224 is the shape of an input for --verify",
}


def of_option(name: str, line: Sequence[str], known: Container[str] = ()) -> str:
    """Returns what to write instead of an option that does not exist, but others that are `known` do; "" if nobody
    knows."""
    option, value = name.replace("_", "-"), _value(name, line)
    if option in _RUNTIME or (option in _OPSET and value and not re.fullmatch(r"[\d.]+|latest", value)):
        return f"No such option: {name}. The runtime is given by --for {value or 'NAME@VERSION'}."
    if option in _OPSET:
        return f"No such option: {name}. The opset is given by --to {value or 'N'}."
    if option in _OUTPUT:
        return f"No such option: {name}. The output is given by -o {value or 'PATH'}."
    if option in _INPUT:
        return f"No such option: {name}. The model needs none: onnx-convert {value or 'MODEL'} --to N."
    if option in _SAME:
        return f"No such option: {name}. {_SAME[option][0].upper()}{_SAME[option][1:]}."
    return f"No such option: {name}. It is spelled {option}." if option != name and option in known else ""


def of_arguments(models: Sequence[str]) -> str:
    """Returns what to write instead of an argument that is no file, "" if all are ones or patterns."""
    whole = " ".join(models)
    if len(models) > 1 and Path(whole).is_file():
        return f"A file name with blanks needs quotes: {_quoted(whole)}."
    if models and models[0] in _COMMANDS and not os.path.lexists(models[0]):
        line = f"onnx-convert {models[-1] if len(models) > 1 else 'MODEL'} --to N"
        return f"There is no command {models[0]}: {line}, or what --help lists."
    for word in models[1:]:
        if os.path.lexists(word) or glob.has_magic(word) or not word:
            continue
        if re.fullmatch(r"\d+([.]\d+)+", word):
            return f"Unexpected {word}. A version follows an @, as in --for onnxruntime@{word}."
        if word.isdecimal():
            return f"Unexpected {word}. The opset is given by --to {word}."
        if re.fullmatch(r"[\w.-]+(@|==)[\w.+-]+", word):
            return f"Unexpected {word}. The runtime is given by --for {word}."
        return f"Unexpected {word}: there is no such file. The output is given by -o {word}."
    return ""


def _quoted(name: str) -> str:
    """Returns a file name as a shell takes it."""
    return f'"{name}"' if re.search(r"\s", name) else name


def _value(name: str, line: Sequence[str]) -> str:
    """Returns the value that an option has on the command line, behind a = or as the next word; "" if it has none."""
    for index, word in enumerate(line):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name:
            following = line[index + 1] if index + 1 < len(line) else ""
            return "" if following.startswith("-") else following
    return ""
