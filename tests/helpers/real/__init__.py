# SPDX-License-Identifier: Apache-2.0
"""Models as people run them, and as export tools write them."""
