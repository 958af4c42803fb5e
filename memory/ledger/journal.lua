-- Stores what a step of a run returned, in place of another one, and removes the steps that the run takes again.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, worker, position, head, result, keep_ms, positions to remove...
-- Returns: 1: stored; -1: the run was replaced, has ended or is to be cancelled
-- include entry
-- include pointer
local g, heads, results = ':' .. ARGV[1], key .. ':steps', key .. ':results'
local found = redis.call('HMGET', key, 'report' .. g, 'cancel' .. g, 'worker' .. g, 'leased_until' .. g, 'furthest' .. g, 'finished_at' .. g)
if found[1] or found[2] or found[6] or wished == ARGV[1] then return -1 end
-- include now
if found[3] and found[3] ~= ARGV[2] and found[4] and tonumber(found[4]) > now then return -1 end
for i = 7, #ARGV do
  redis.call('HDEL', heads, ARGV[i])
  redis.call('HDEL', results, ARGV[i])
end
-- A task that got further than ever is not one that only kills its worker: its crashes alone count anew.
if tonumber(ARGV[3]) > tonumber(found[5] or '-1') then
  redis.call('HSET', key, 'furthest' .. g, ARGV[3])
  redis.call('HDEL', key, 'crashes_alone' .. g)
end
-- Layout 2 says when it was; where layout 1 is read, 0.2 may compare what it wrote.
redis.call('HSET', heads, ARGV[3], (pointer and '@' .. string.format('%.0f', now) .. ' ' or '') .. ARGV[4])
redis.call('HSET', results, ARGV[3], ARGV[5])
redis.call('PEXPIRE', heads, ARGV[6])
redis.call('PEXPIRE', results, ARGV[6])
return 1
