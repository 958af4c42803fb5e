-- Notes how many notices of a wait were sent.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, field, number
-- Returns: 1: done; 0: the task is known no more
-- include entry
if redis.call('EXISTS', key) == 0 then return 0 end
redis.call('HSET', key, ARGV[1], ARGV[2])
return 1
