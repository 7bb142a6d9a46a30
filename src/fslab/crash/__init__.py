"""Crash consistency: operations on a virtual disk that keeps a log, the states that a power cut may leave, and what
each state breaks. ``trial`` puts the parts together; each part knows only what it needs.

sources (sequences, runs of applications; marks in the log) ▸ states (images) ▸ examine (mount, check) ▸ verdicts
"""
