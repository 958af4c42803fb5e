-- Stores what a step of a run returned; another step in its place goes, with every later one.
-- KEYS: task, heads, results
-- ARGV: generation, worker, position, head, result, keep_ms
-- Returns: 1: stored; -1: the run was replaced, has ended or is to be cancelled
local key, g = KEYS[1], ':' .. ARGV[1]
local found = redis.call('HMGET', key, 'report' .. g, 'cancel' .. g, 'worker' .. g, 'leased_until' .. g, 'furthest' .. g)
if found[1] or found[2] then return -1 end
-- include now
if found[3] and found[3] ~= ARGV[2] and found[4] and tonumber(found[4]) > now then return -1 end
local head = redis.call('HGET', KEYS[2], ARGV[3])
if head and head ~= ARGV[4] then
  for _, position in ipairs(redis.call('HKEYS', KEYS[2])) do
    if tonumber(position) >= tonumber(ARGV[3]) then
      redis.call('HDEL', KEYS[2], position)
      redis.call('HDEL', KEYS[3], position)
    end
  end
end
-- A task that got further than ever is not one that only kills its worker: its crashes alone count anew.
if tonumber(ARGV[3]) > tonumber(found[5] or '-1') then
  redis.call('HSET', key, 'furthest' .. g, ARGV[3])
  redis.call('HDEL', key, 'crashes_alone' .. g)
end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
redis.call('HSET', KEYS[3], ARGV[3], ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[6])
redis.call('PEXPIRE', KEYS[3], ARGV[6])
return 1
