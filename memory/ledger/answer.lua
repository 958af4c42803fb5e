-- Stores the answer to a wait, once; a task that waits for it is due from now on.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, slot, answer, digest of the question, 1 when a signal
-- Returns: {1}: it counts; {0, earlier answer}; {-1}: no such wait; {-2}: the task has ended; {-3}: another question;
--   {-4}: the task waits without it
-- include entry
-- include pointer
local field = 'wait.' .. ARGV[1]
local wait, answer = unpack(redis.call('HMGET', key, field, field .. '.answer'))
if answer then return {0, answer} end
if wait then
  -- What is no wait was written by another program, and counts as none.
  local is_read, read = pcall(cjson.decode, wait)
  wait = is_read and type(read) == 'table' and type(read.generation) == 'number' and read or false
end
if not wait and (ARGV[4] ~= '1' or redis.call('EXISTS', key) == 0) then return {-1} end
local generation = 0
if wait then
  generation = wait.generation
  if ARGV[4] ~= '1' and wait.digest ~= ARGV[3] then return {-3} end
else
-- include newest
  generation = newest
end
local g = ':' .. string.format('%.0f', generation)
local found = redis.call('HMGET', key, 'report' .. g, 'cancel' .. g, 'finished_at' .. g)
if found[1] or found[2] or found[3] or wished and ':' .. wished == g then return {-2} end
if wait and ARGV[4] ~= '1' then
-- include withdrawn
  if withdrawn then return {-4} end
end
redis.call('HSET', key, field .. '.answer', ARGV[2])
if wait and redis.call('HGET', key, 'state' .. g) == 'waiting' then redis.call('HDEL', key, 'due_at' .. g) end
return {1}
