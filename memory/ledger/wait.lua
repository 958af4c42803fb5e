-- Ends a run that waits: keeps what it waits for, and all that the task needs, for as long as the wait and keep_ms.
-- KEYS: task, heads, results, children
-- ARGV: generation, token, wait_ms, due_ms, assignment, keep_ms, slot, wait
-- Returns: 1: it waits; 2: its answer is there, so that it is due at once; 0: not that run
-- include end_run
-- include now
redis.call('HINCRBY', key, 'excused' .. g, 1)
redis.call('HSET', key, 'state' .. g, 'waiting')
redis.call('HDEL', key, 'waits_for' .. g)
redis.call('HSETNX', key, 'assignment' .. g, ARGV[5])
redis.call('HSET', key, 'wait.' .. ARGV[7], ARGV[8])
local answered = redis.call('HEXISTS', key, 'wait.' .. ARGV[7] .. '.answer') == 1
if not answered then redis.call('HSET', key, 'due_at' .. g, string.format('%.0f', now + tonumber(ARGV[4]))) end
for _, each in ipairs(KEYS) do redis.call('PEXPIRE', each, tonumber(ARGV[3]) + tonumber(ARGV[6])) end
return answered and 2 or 1
