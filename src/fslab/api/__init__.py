"""The library that the command line uses: studies, plans, campaigns, results.

``import fslab`` exports its public part.
"""
