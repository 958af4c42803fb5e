"""`tasklore pipelines`: run phases that make one result together, and go on where they stopped.

Here belongs what these commands ask and print; runs are driven by supervisors.
"""
