"""The cost of models: limits, accounts that a call is reserved on, and the books of a day.

A call is reserved in one script before its request leaves and settled by the provider's count after it.
"""
