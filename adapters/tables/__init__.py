# SPDX-License-Identifier: Apache-2.0
"""Decisions about many operators at once, as data: which boundaries change nothing, which nobody can cross, and which
dtypes carry others."""
