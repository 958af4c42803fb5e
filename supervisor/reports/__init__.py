"""Reports: delivered to waiting requests, written for tasks that no worker ends, and compared with the ledger.

Here belongs reading them; a worker's report is published in `tasklore.workers.execution`.
"""
