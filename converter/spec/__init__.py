# SPDX-License-Identifier: Apache-2.0
"""Tells what ONNX says, as the installed onnx has it: opsets, signatures, types, what changed between versions."""
