# SPDX-License-Identifier: Apache-2.0
"""Writes converter/target/MESSAGES.md from the table of messages: `python tests/helpers/messages_page.py`."""

from __future__ import annotations

from pathlib import Path

from onnx_convert.target import messages

PAGE = Path(__file__).parents[2] / "converter" / "target" / "MESSAGES.md"
TEXT = (
    '`onnx-convert --message "..."` reads such a message and says the same with its numbers. '
    "The table is made from [messages.toml](messages.toml) by `python tests/helpers/messages_page.py`. "
    "What is to be typed follows `onnx-convert MODEL`. "
    "A message about an operator that the runtime does not have at any opset is beyond this tool."
)
HEAD = f"""# What runtimes print, and what to type then

{TEXT}

| what is printed | by | what to type |
|---|---|---|
"""


def page() -> str:
    """Returns the page as it has to be."""
    return HEAD + "\n".join(messages.markdown()) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
