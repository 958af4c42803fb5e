"""`tasklore limits` and `tasklore budget`: what models may be asked and spend, and what they did.

Here belongs what these commands print; limits, accounts and books are kept and summed up by `memory.budgets`.
"""
