"""`tasklore limits` and `tasklore budget`: limits on models, and the spending under them.

Here belongs what these commands print; limits, accounts and books are kept and summed up by `tasklore.memory.budgets`.
"""
