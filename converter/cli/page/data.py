# SPDX-License-Identifier: Apache-2.0
"""The report as plain data, as `--json` prints it and `--report` writes it: the fields of `Report`, with null where
nothing is known. Pages and Markdown are made of nothing else."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from onnx_convert.errors import OnnxConvertError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx_convert.reference.model_summary import Description
    from onnx_convert.report import Report

SCHEMA: Final = 1
"""The version of the layout: it grows where a field goes or means something else, not where one is added."""


def report_data(status: str, told: Report | Description | None = None, **more: Any) -> dict[str, Any]:
    """Returns how it ended, a report or a description, and what else there is to tell, as one object."""
    import onnx_convert

    tool = {"name": "onnx-convert", "version": onnx_convert.__version__}
    return {"schema": SCHEMA, "tool": tool, "status": status, **(told.to_dict() if told else {}), **more}


def with_texts(data: dict[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """Returns a report with what the specification changed in each step of its examples, and with the commands that do
    what remedies say. `command` is the command of the report."""
    examples = [
        {**example, "steps": [{**step, **_texts(step)} for step in example["steps"]]}
        for example in data.get("examples") or ()
    ]
    refusals = [
        {**refusal, "command": remedied(command, refusal["remedy"] or "")} for refusal in data.get("refusals", ())
    ]
    nearest = data.get("nearest")
    also = [f"{domain}:{version}" for domain, version in (data.get("also") or {}).items()]
    reached = shlex.join(_aimed(command, [str(nearest), *also])) if nearest else None
    return {
        **data,
        "examples": examples if data.get("examples") is not None else None,
        "refusals": refusals,
        "nearest_command": reached,
    }


def _texts(step: Mapping[str, Any]) -> dict[str, str | None]:
    return dict(zip(("specification", "done"), _explained(step["domain"], step["operator"], step["boundary"] or 0,
                                                          step["direction"]), strict=True))  # fmt: skip


@lru_cache(maxsize=256)
def _explained(domain: str, operator: str, boundary: int, direction: str) -> tuple[str | None, str | None]:
    """Returns what the specification changed at a boundary, in a sentence, and what is done about it."""
    from onnx_convert.reference import operators

    if not boundary:
        return None, None
    try:
        found = operators.explain(f"{domain}.{operator}@{boundary}").boundaries[0]
    except (OnnxConvertError, IndexError):
        return None, None
    way = found.up if direction == "up" and found.up is not None else found.down
    changed = ". ".join(found.told) or "; ".join(found.changes)
    if found.up is None and not found.told:
        changed = f"the operator is new in opset {boundary}; below, there is none"
    return _sentence(changed), _sentence(way.text if way.decision == operators.ADAPTED else "")


def _sentence(text: str) -> str | None:
    text = " ".join(text.split()).rstrip(".")
    return f"{text[0].upper()}{text[1:]}." if text else None


def remedied(command: Sequence[str], remedy: str) -> str | None:
    """Returns the command that does what a remedy says; None if no option does."""
    line = [*command]
    for option in re.findall(r"leave out (--[a-z-]+)", remedy):
        line = [word for word in line if word != option]
    wanted = re.search(r"go no (?:lower|higher) than opset (\d+)(?: of ([\w.]+))?", remedy)
    if wanted is not None:
        line = _aimed(line, [f"{wanted[2]}:{wanted[1]}" if wanted[2] else wanted[1]])
    for option, value in re.findall(r"(?<!leave out )(--(?:types|allow|expand|to|from)) ([\w.:-]+)", remedy):
        if option == "--to":
            line = _aimed(line, [value])
        elif f"{option} {value}" not in " ".join(line):
            line += [option, value]
    return shlex.join(line) if line != [*command] else None


def _aimed(command: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Returns a command with other opsets: those of domains that are not named stay."""
    named = {target.rpartition(":")[0] for target in targets}
    line: list[str] = []
    words = iter(command)
    for word in words:
        if word in ("--to", "--for"):
            value = next(words, "")
            if word == "--for" or value.rpartition(":")[0] in named:
                continue
            line += [word, value]
        else:
            line.append(word)
    return [*line, *(part for target in targets for part in ("--to", target))]
