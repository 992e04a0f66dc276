# SPDX-License-Identifier: Apache-2.0
"""Operators that the target does not have: what each becomes below the opset that introduced it, one family a file.

Importing this package imports every file in it and so fills the registry, as `adapters` does.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
