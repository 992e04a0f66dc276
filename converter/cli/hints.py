# SPDX-License-Identifier: Apache-2.0
"""Tells people with the habits of other tools what they mean here: options of other names, a second file name."""

from __future__ import annotations

import glob
import os
import re
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


def of_arguments(models: Sequence[str]) -> str:
    """Returns what to write instead of an argument behind the first that is no file, "" if all are ones or patterns."""
    for word in models[1:]:
        if os.path.lexists(word) or glob.has_magic(word) or not word:
            continue
        if word.isdecimal():
            return f"Unexpected {word}. The opset is given by --to {word}."
        if re.fullmatch(r"[\w.-]+(@|==)[\w.+-]+", word):
            return f"Unexpected {word}. The runtime is given by --for {word}."
        return f"Unexpected {word}: there is no such file. The output is given by -o {word}."
    return ""


def _value(name: str, line: Sequence[str]) -> str:
    """Returns the value that an option has on the command line, behind a = or as the next word; "" if it has none."""
    for index, word in enumerate(line):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name:
            following = line[index + 1] if index + 1 < len(line) else ""
            return "" if following.startswith("-") else following
    return ""
