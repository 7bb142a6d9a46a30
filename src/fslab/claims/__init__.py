"""Claims: statements about file systems, and the verdicts of printed and measured figures on them.

``language`` and ``parser`` define a small language for statements. ``scope`` and ``resolve`` turn a statement into
``parts`` among the cells of a study. ``published`` judges the parts by printed figures, ``evaluate`` by trials. Pure:
reads no store, starts nothing.
"""
