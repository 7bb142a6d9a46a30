"""Claims: sentences about file systems that figures can uphold or contradict, and what figures say of them.

A small language (``language``, ``parser``), what its words mean among the cells of a study (``scope``, ``parts``),
and verdicts: of printed figures (``published``) and of trials (``judge``). Pure: reads no store, starts nothing.
"""
