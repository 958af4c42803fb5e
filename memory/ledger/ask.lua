-- Keeps a question of a run that goes on elsewhere, and lists it with the open waits of its task.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, worker, slot, wait
-- Returns: 1: kept; 0: the run was replaced, has ended or is to be cancelled
-- include entry
-- include pointer
local g = ':' .. ARGV[1]
local found = redis.call('HMGET', key, 'report' .. g, 'cancel' .. g, 'worker' .. g, 'state' .. g, 'attempts' .. g)
if found[1] or found[2] or wished == ARGV[1] or found[3] ~= ARGV[2] or found[4] ~= 'running' then return 0 end
-- include listed_waits
local slots = {ARGV[1], found[5] or '0'}
for _, slot in ipairs(listed and generation == ARGV[1] and listed or {}) do
  if slot ~= ARGV[3] then slots[#slots + 1] = slot end
end
slots[#slots + 1] = ARGV[3]
redis.call('HSET', key, 'wait.' .. ARGV[3], ARGV[4], 'open_waits', table.concat(slots, ' '))
return 1
