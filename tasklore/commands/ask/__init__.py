"""`tasklore ask` and `cancel`: a request over core NATS, and its answer.

Here belongs the way of one question from the terminal; understanding it is the supervisor's business.
"""
