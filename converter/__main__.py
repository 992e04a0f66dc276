# SPDX-License-Identifier: Apache-2.0
"""`python -m onnx_convert`, like the script `onnx-convert`, is the command line in a process of its own."""


def run() -> None:
    """Runs the command line to the end of the process. Its imports take a while, and may be interrupted as well."""
    try:
        from onnx_convert.cli import collector

        collector.rest()
        from onnx_convert.cli.main import main

        main(prog_name="onnx-convert", obj=collector.resume)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    run()
