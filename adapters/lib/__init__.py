# SPDX-License-Identifier: Apache-2.0
"""Helpers that the families of adapters share. Nothing in here registers an adapter."""
