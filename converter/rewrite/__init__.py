# SPDX-License-Identifier: Apache-2.0
"""Brings one node, and one graph of nodes, from opset to opset."""
