# SPDX-License-Identifier: Apache-2.0
"""Says what changed between two runs: `python tests/helpers/conformance/compare.py before.json after.json`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":  # a script's own folder is on the path, its parent is not
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from conformance import results


def main(arguments: list[str]) -> int:
    """Returns 1 if a verdict has changed."""
    if len(arguments) != 2:
        sys.stdout.write(f"{__doc__}\n")
        return 2
    (one, before), (other, after) = (results.read(Path(argument)) for argument in arguments)
    for key in sorted(one.keys() | other.keys()):
        if one.get(key) != other.get(key):
            sys.stdout.write(f"{key}: {one.get(key)} -> {other.get(key)}\n")
    moved = results.changes(before, after)
    sys.stdout.write(f"{moved or 'every verdict is the same'}\n")
    return int(bool(moved))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
