# SPDX-License-Identifier: Apache-2.0
"""The manual page says what `--help` says."""

from __future__ import annotations

import shutil
import subprocess

import click
import man_page
import pytest

from onnx_convert.cli.main import main


def test_it_is_up_to_date() -> None:
    assert man_page.PLACE.read_text() == man_page.page(), "python tests/helpers/man_page.py writes it anew"


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_it_shows_every_option_and_nothing_is_wrong_in_it() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-P-c", "-rLL=200n", man_page.PLACE],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = done.stdout.replace("_\b", "")
    bold = "".join(sign for place, sign in enumerate(shown) if shown[place + 1 : place + 2] != "\b" and sign != "\b")
    assert done.stderr == ""
    names = [
        name for option in main.params if isinstance(option, click.Option) and not option.hidden for name in option.opts
    ]
    assert len(names) > 40 and [name for name in names if name not in bold] == []
    assert "5      would change" in bold
