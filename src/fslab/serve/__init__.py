"""Live reports of a store in a browser: read-only pages, by default on the loopback address.

``app`` responds to requests, and sends a campaign's progress to its page. ``guard`` rejects requests that are not
allowed. Must not measure, start anything, or change the store.
"""
