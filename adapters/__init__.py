# SPDX-License-Identifier: Apache-2.0
"""How each operator crosses each of its version boundaries: one file a family, up and down side by side.

Importing this package imports every file in it and so fills the registry; a new file needs no entry anywhere. An
adapter knows `registry` (to register itself), `site` (what it may ask) and the emitter that it is handed (what it may
write), and nothing else.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
