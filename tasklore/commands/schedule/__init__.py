"""`tasklore schedule`: what begins by itself, again and again.

Here belong the printing of these commands and how times are typed; what a schedule may be is
`tasklore.supervisor.schedules`.
"""
