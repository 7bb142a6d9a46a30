"""Reports of a campaign's results, for people: ``build`` decides the contents, ``terminal`` the layout.

Imports neither of them. A report never measures, and must not change the store.
"""
