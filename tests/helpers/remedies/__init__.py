# SPDX-License-Identifier: Apache-2.0
"""Follows the remedies of refusals: `following` one of them, `walk` those of all rows on all ways with all options,
`run` is the command that does."""
