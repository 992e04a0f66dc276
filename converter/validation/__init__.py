# SPDX-License-Identifier: Apache-2.0
"""Validates a source at its own opset, before anything trusts it."""
