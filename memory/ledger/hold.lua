-- Renews the lease of a run.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, worker, lease_ms
-- Returns: 1: done; 0: it ended; -1: another worker's
-- include entry
local g = ':' .. ARGV[1]
local last = redis.call('HMGET', key, 'worker' .. g, 'leased_until' .. g)
if last[1] ~= ARGV[2] then return last[1] and -1 or 0 end
if not last[2] then return 0 end
-- include now
redis.call('HSET', key, 'leased_until' .. g, string.format('%.0f', now + tonumber(ARGV[3])))
return 1
