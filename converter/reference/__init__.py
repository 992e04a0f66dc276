# SPDX-License-Identifier: Apache-2.0
"""Answers questions without a conversion: what is done about an operator, what a model is."""
