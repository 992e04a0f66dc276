# SPDX-License-Identifier: Apache-2.0
"""Tries every adapter over a small domain that is written down."""
