# SPDX-License-Identifier: Apache-2.0
"""A page that needs no network and nothing beside it, and in which nothing of a file runs.

A content security policy lets no script run but ours, by its hash, and nothing be loaded; all text is escaped besides.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from onnx_convert.cli.page.svg import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def document(title: str, parts: Iterable[str], footer: str, *, styles: Sequence[str], script: str) -> str:
    """Returns a page. `parts` and `footer` are HTML, `styles` and `script` names of files of this folder."""
    style, code = "".join(_part(name) for name in styles), _part(script)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    head = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><meta name="generator" content="onnx-convert">'
        f"<title>{clean(title)}</title><style>{style}</style></head>\n<body>"
    )
    skip = '<a class="skip" href="#content">To the report</a>'
    return "".join((head, skip, *parts, f"<footer>{footer}</footer><script>{code}</script></body></html>\n"))


@lru_cache(maxsize=4)
def _part(name: str) -> str:
    return (resources.files("onnx_convert.cli.page") / name).read_text(encoding="utf-8")
