# SPDX-License-Identifier: Apache-2.0
"""The backend tests that onnx publishes, as an oracle for the converter: every case is carried to other opsets, where
it has to be legal and has to give the published outputs, or has to be refused.

    python tests/helpers/conformance/run.py --sample 300 --out /tmp/a.json
    python tests/helpers/conformance/compare.py /tmp/a.json /tmp/b.json

`corpus` collects the cases, `evaluators` runs a model and compares results, `judge` gives the verdicts, `workers`
spreads them over processes that may crash or hang, `results` is the file of a run and its summary.
"""
