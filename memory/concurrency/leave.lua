-- Gives a place up, and takes a task that has ended off those that wait.
-- KEYS: see places
-- ARGV: now_ms or nothing, task, limit, 0, the token of its run, or nothing when it has ended
-- Returns: those whose turn it is
-- include ../budgets/clock
-- include places
local own = redis.call('HGET', runs, name)
if own and string.match(own, '^%S+ (%S+)') == ARGV[5] then
  redis.call('ZREM', held, name)
  redis.call('HDEL', runs, name)
end
if ARGV[5] == '' then forget(name) end
if free() <= 0 then return {} end
return redis.call('ZRANGE', queue, 0, free() - 1)
