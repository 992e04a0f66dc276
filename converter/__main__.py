# SPDX-License-Identifier: Apache-2.0
"""`python -m onnx_convert` is the command line."""

from onnx_convert.cli import main

main(prog_name="onnx-convert")
