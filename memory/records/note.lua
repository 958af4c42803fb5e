-- Notes how far a record is.
-- KEYS: records, states, due
-- ARGV: id, version of the record that this rests on, the state that this rests on, state, ms since 1970 when to look at
--   it or nothing
-- Returns: 1: done; 0: the record is another by now, or gone, or somebody else noted it
local id, found = ARGV[1], redis.call('HGET', KEYS[1], ARGV[1])
if not found or cjson.decode(found).version ~= tonumber(ARGV[2]) then return 0 end
if redis.call('HGET', KEYS[2], id) ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[2], id, ARGV[4])
if ARGV[5] == '' then redis.call('ZREM', KEYS[3], id) else redis.call('ZADD', KEYS[3], ARGV[5], id) end
return 1
