"""What Tasklore costs: figures taken in one run, beside raw clients and other task queues on the same machine.

Nothing here is shipped or imported by the product; a benchmark talks to it as any outside program does.
"""
