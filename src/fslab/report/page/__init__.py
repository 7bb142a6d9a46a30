"""The page: one HTML file with the answer first and the evidence below. It needs no network and no server.

``assemble`` decides the contents, ``render`` the layout; ``templates`` and ``static`` are its files. No module here
reads a store or a machine, or computes statistics other than medians and means.
"""
