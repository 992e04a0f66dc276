# SPDX-License-Identifier: Apache-2.0
"""Squeeze, Unsqueeze."""
