# SPDX-License-Identifier: Apache-2.0
"""Runs the source and the result of a conversion on the same inputs, and compares what they compute."""
