# SPDX-License-Identifier: Apache-2.0
"""Many models in one call: found, converted by worker processes, told about as they end, skipped when up to date."""
