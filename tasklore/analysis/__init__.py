"""`tasklore analysis`: have the responses of a story analysed, and look at what was found.

Here belongs what these commands ask and print; analyses are driven by supervisors.
"""
