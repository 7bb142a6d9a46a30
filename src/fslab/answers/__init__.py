"""Questions and answers: which of two things is larger, by how much, how sure that is, and what would make it sure.

``ratio`` is the only module that compares; tables, comparisons of campaigns, claims, histories and fleets ask it. It
must not know stores, file systems or layouts of text.
"""
