# SPDX-License-Identifier: Apache-2.0
"""The report as a page: data in, text out."""
