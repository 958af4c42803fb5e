"""`tasklore agents`: cards, live workers, and trying out what a card understands.

Here belongs what these commands print; agents are loaded by `tasklore.workers.loading`.
"""
