"""Work that begins by itself, again and again: when its ticks are, who may change it, and the scheduler that begins it.

Records lie in `tasklore.memory.schedules`; a tick is a task, or a run of a pipeline, like any other.
"""
