-- Notes that a task was assigned.
-- KEYS: task
-- ARGV: generation, assignment, keep_ms, its trace if any
-- Returns: nil
-- include read_report
redis.call('HSETNX', key, 'assignment' .. g, ARGV[2])
redis.call('HSETNX', key, 'state' .. g, 'accepted')
if ARGV[4] then redis.call('HSETNX', key, 'trace' .. g, ARGV[4]) end
-- A task that waits for days is known for longer.
if redis.call('PTTL', key) < tonumber(ARGV[3]) then redis.call('PEXPIRE', key, ARGV[3]) end
return false
