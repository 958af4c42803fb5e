"""`tasklore ask`: one operation of the API, whose answer is waited for, shown while it comes, and found again.

Here belongs the way of one question from the terminal; understanding it is the supervisor's business.
"""
