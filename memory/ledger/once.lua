-- Claims an effect of a run, for one caller.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, worker, name, token, keep_ms
-- Returns: 1: yours to make; 0: another's; -1: the run was replaced
-- include entry
local g, generation = ':' .. ARGV[1], tonumber(ARGV[1])
-- include own
local found = redis.call('HMGET', key, 'once.' .. ARGV[3], 'report' .. g, 'cancel' .. g, 'worker' .. g,
  'leased_until' .. g, 'finished_at' .. g)
if found[1] then return found[1] == ARGV[4] and 1 or 0 end
if found[2] or found[3] or found[6] then return -1 end
-- include now
if found[4] and found[4] ~= ARGV[2] and found[5] and tonumber(found[5]) > now then return -1 end
redis.call('HSET', key, 'once.' .. ARGV[3], ARGV[4])
keep(ARGV[5])
return 1
