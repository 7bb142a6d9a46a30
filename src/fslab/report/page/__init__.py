"""The page: one HTML file that answers first and shows its evidence below, offline and without a server.

``assemble`` says what stands in it, ``render`` how it looks; ``templates`` and ``static`` are its files. Nothing here
reads a store or a machine, or computes a statistic.
"""
