-- Lets a task that waits for its next run be due at once.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation
-- Returns: {attempts, assignment, trace}: it waits; 0: it does not, or not yet; -1: no run of it follows
-- include entry
-- include pointer
local g = ':' .. ARGV[1]
local found = redis.call('HMGET', key, 'state' .. g, 'report' .. g, 'cancel' .. g, 'attempts' .. g, 'assignment' .. g,
  'trace' .. g, 'due_at' .. g, 'finished_at' .. g)
if not found[1] or found[2] or found[3] or found[8] or wished == ARGV[1] then return -1 end
if found[1] ~= 'waiting' or not found[5] then return 0 end
-- include now
if found[7] and tonumber(found[7]) > now then redis.call('HSET', key, 'due_at' .. g, string.format('%.0f', now)) end
return {found[4] or '0', found[5], found[6] or ''}
