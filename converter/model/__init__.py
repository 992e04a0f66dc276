# SPDX-License-Identifier: Apache-2.0
"""Work on protobuf messages: graphs, tensors, attributes, functions, validation, and the patch that a conversion is.

Knows no file and no adapter.
"""
