"""`tasklore analysis`: have the responses of a story analysed, and print the findings.

Here belong requests and printing; analyses are driven by supervisors.
"""
