# SPDX-License-Identifier: Apache-2.0
"""Resolves what is asked for: opsets, an IR version, a runtime."""
