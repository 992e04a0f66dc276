# SPDX-License-Identifier: Apache-2.0
"""Hunts for what onnx says although it is not so."""
