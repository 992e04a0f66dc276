# SPDX-License-Identifier: Apache-2.0
"""Operators that the target does not have: what each becomes below the opset that introduced it, one family a file."""
