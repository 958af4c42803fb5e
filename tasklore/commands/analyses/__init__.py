"""`tasklore analyses`: have the responses of a story analysed, and print the findings.

Here belong files and folders of this machine, and printing; everything else is an operation of the API.
"""
