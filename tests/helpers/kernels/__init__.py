# SPDX-License-Identifier: Apache-2.0
"""Asks onnxruntimes which operators and types they have kernels for, and makes the table of it."""
