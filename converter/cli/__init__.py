# SPDX-License-Identifier: Apache-2.0
"""The command line: the only storey that prints or exits."""
