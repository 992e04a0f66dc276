# SPDX-License-Identifier: Apache-2.0
"""Hostile models: `mutations` makes them, `fuzz` converts them in child processes and counts what comes of it."""
