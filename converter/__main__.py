# SPDX-License-Identifier: Apache-2.0
"""`python -m onnx_convert` is the command line."""

from onnx_convert.cli.main import main

main(prog_name="onnx-convert")
