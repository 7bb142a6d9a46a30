"""What the trials of a campaign say together: which of them are alike, and how the stacks compare.

Pure. The one place where trials become comparisons, for the stopping rule, the report and every verdict; it
neither reads the store nor knows how anything is shown.
"""
