"""Crash consistency: run operations on a virtual disk that keeps a log, make the states that a power cut may leave, and
find the promises that each state breaks. ``trial`` connects the modules; each module imports only what it needs.

sources (sequences, runs of applications; marks in the log) ▸ states (images) ▸ examine (mount, check) ▸ verdicts
"""
