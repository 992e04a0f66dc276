# SPDX-License-Identifier: Apache-2.0
"""Tables of operator boundaries, one family a file: what goes in, where to, and what has to come of it.

To add a case, add a row to a table; to add a family, add a `table_*.py` with a `ROWS`. See `rows.py` for the columns.
"""
