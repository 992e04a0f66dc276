# SPDX-License-Identifier: Apache-2.0
"""Random models, as an oracle for the converter: whatever it is given, it gives back a legal model that computes the
same, or refuses.

    python tests/helpers/fuzz/run.py --seed 7 --count 1000 --seconds 600

`growing` grows a graph node by node, `recipes` say what an operator demands of its inputs and attributes, `nests` and
`trials` put the graph into the shapes in which models come, `judge` carries it to other opsets and back, `shrink` makes
what fails small. `apart` is the process in which evaluators run.
"""
