-- Notes that a task was assigned.
-- KEYS: task
-- ARGV: generation, assignment, keep_ms, its trace if any
-- Returns: nil
-- include read_report
redis.call('HSETNX', key, 'assignment' .. g, ARGV[2])
redis.call('HSETNX', key, 'state' .. g, 'accepted')
if ARGV[4] then redis.call('HSETNX', key, 'trace' .. g, ARGV[4]) end
redis.call('PEXPIRE', key, ARGV[3])
return false
