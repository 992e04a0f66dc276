# SPDX-License-Identifier: Apache-2.0
"""What operators mean, in numpy, from their texts: the third opinion where the evaluators contradict each other."""
