"""Turns the trials of a campaign into comparisons: which trials belong together, and how the stacks compare.

Pure. The stopping rule, the report and all verdicts take their comparisons from this package only. It does not read the
store and formats no output.
"""
