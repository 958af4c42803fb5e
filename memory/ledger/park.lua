-- Ends a run that goes on later.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, token, wait_ms, assignment or nothing, keep_ms, weight: 0, 1 to excuse the run, or 2 to take it back from the attempts,
--   and what it waits for, or nothing
-- Returns: 1: done; 0: not that run
-- include end_run
-- include own
-- include now
if ARGV[6] == '1' then redis.call('HINCRBY', key, 'excused' .. g, 1) end
if ARGV[6] == '2' then redis.call('HINCRBY', key, 'attempts' .. g, -1) end
redis.call('HSET', key, 'state' .. g, 'waiting')
if ARGV[3] ~= '0' then redis.call('HSET', key, 'due_at' .. g, string.format('%.0f', now + tonumber(ARGV[3]))) end
if ARGV[4] ~= '' then redis.call('HSETNX', key, 'assignment' .. g, ARGV[4]) end
if (ARGV[7] or '') ~= '' then redis.call('HSET', key, 'waits_for' .. g, ARGV[7]) else redis.call('HDEL', key, 'waits_for' .. g) end
keep(ARGV[5])
return 1
