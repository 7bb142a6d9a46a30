"""The library under the command line: studies, plans, campaigns, results.

``import fslab`` offers what is public of it.
"""
