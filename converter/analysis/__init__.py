# SPDX-License-Identifier: Apache-2.0
"""Tells what is known of values: types that inference finds on a view without weights, and folded constants."""
