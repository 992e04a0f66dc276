# SPDX-License-Identifier: Apache-2.0
"""Reads and writes bytes: the only storey that opens files."""
