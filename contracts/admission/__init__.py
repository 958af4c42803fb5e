"""When work goes ahead: limits on models, schedules, and waits for a person, a signal or a time.

Pure values, as all of `contracts`.
"""
