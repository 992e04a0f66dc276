# SPDX-License-Identifier: Apache-2.0
"""Plans the conversion of a whole model, and checks the plan."""
