"""Fair admission: tasks of an agent whose workers are busy wait in WAITING, and are moved to TASKS by turns."""
