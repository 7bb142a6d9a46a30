"""Live reports of a store in a browser: read-only pages, by default on the loopback address.

``app`` responds to requests, ``guard`` rejects those that are not allowed, ``events`` sends a campaign's progress to
its page. Must not measure, start anything, or change the store.
"""
