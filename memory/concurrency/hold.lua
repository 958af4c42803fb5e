-- Renews a place.
-- KEYS: see places
-- ARGV: now_ms or nothing, task, limit, lease_ms, token
-- Returns: 1: held; 0: the run has left it, or the store has lost it
-- include ../budgets/clock
-- include places
local own = redis.call('HGET', runs, name)
if not own or string.match(own, '^%S+ (%S+)') ~= ARGV[5] then return 0 end
hold(own)
return 1
