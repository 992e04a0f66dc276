# SPDX-License-Identifier: Apache-2.0
"""Tells people with the habits of other tools what they mean here: options of other names, a second file name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPSET: Final = frozenset(
    "-t --opset --opset-version --target --target-opset --target-opset-version --target-version --to-opset".split()
)
_RUNTIME: Final = frozenset("--runtime --target-runtime --backend --platform --device".split())
_OUTPUT: Final = frozenset("--out --outfile --output-file --output-model --output-model-path --output-path".split())
_INPUT: Final = frozenset("-i -m --input --input-file --input-model --input-model-path --model --model-path".split())
_SAME: Final = {
    "--dry-run": "--check plans and writes nothing",
    "--inspect": "without --to, a model is described",
    "--info": "without --to, a model is described",
    "--overwrite": "-f replaces a file that is no ONNX model; ONNX models are replaced anyway",
    "--verify": "comparing the numbers of source and result is not possible yet; each rewrite says whether it is exact",
}


def of_option(name: str, line: Sequence[str]) -> str:
    """Returns what to write instead of an option that does not exist; "" if nobody knows."""
    option, value = name.replace("_", "-"), _value(name, line)
    if option in _RUNTIME or (option in _OPSET and value and not re.fullmatch(r"[\d.]+|latest", value)):
        return f"No such option: {name}. The runtime is given by --for {value or 'NAME@VERSION'}."
    if option in _OPSET:
        return f"No such option: {name}. The opset is given by --to {value or 'N'}."
    if option in _OUTPUT:
        return f"No such option: {name}. The output is given by -o {value or 'PATH'}."
    if option in _INPUT:
        return f"No such option: {name}. The model needs none: onnx-convert {value or 'MODEL'} --to N."
    return f"No such option: {name}. {_SAME[option].capitalize()}." if option in _SAME else ""


def of_arguments(more: Sequence[str]) -> str:
    """Returns what to write instead of arguments after the model."""
    first = more[0]
    if len(more) > 1:
        return f"One model at a time: {first} and {more[-1]} are too many. A loop of the shell converts several."
    if first.isdecimal():
        return f"Unexpected {first}. The opset is given by --to {first}."
    if re.fullmatch(r"[\w.-]+(@|==)[\w.+-]+", first):
        return f"Unexpected {first}. The runtime is given by --for {first}."
    if Path(first).is_file():
        return f"One model at a time. If {first} is to be the output: -o {first}."
    return f"Unexpected {first}. The output is given by -o {first}."


def _value(name: str, line: Sequence[str]) -> str:
    """Returns the value that an option has on the command line, behind a = or as the next word; "" if it has none."""
    for index, word in enumerate(line):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name:
            following = line[index + 1] if index + 1 < len(line) else ""
            return "" if following.startswith("-") else following
    return ""
