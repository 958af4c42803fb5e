-- Takes a task off its owner's list, of which no messages are kept.
-- KEYS: until, bytes
-- ARGV: task
-- Returns: nil
redis.call('ZREM', KEYS[1], ARGV[1])
local size = tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or '0')
if redis.call('HDEL', KEYS[2], ARGV[1]) > 0 then redis.call('HINCRBY', KEYS[2], '', -size) end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('UNLINK', KEYS[2]) end
return false
