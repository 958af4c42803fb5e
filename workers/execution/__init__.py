"""The run of one task: consumer, job, recall, executor, retry decision, report publisher, acknowledger.

Here belongs what happens between a delivery and its acknowledgement; what an agent may use is
`tasklore.workers.context`.
"""
