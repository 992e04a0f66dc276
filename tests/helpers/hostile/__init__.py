# SPDX-License-Identifier: Apache-2.0
"""Models that are out to do harm."""
