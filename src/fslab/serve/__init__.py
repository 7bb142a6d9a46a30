"""The reports of a store in a browser, live: read-only pages on this machine's own address.

``app`` answers, ``guard`` decides who is answered, ``events`` tells a page that its campaign went on. Measures
nothing, starts nothing, changes nothing in the store.
"""
