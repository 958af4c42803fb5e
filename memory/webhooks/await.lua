-- Keeps the address that is to hear of a task.
-- KEYS: of the outbox
-- ARGV: "task:ID", callback, ms since 1970 until when
-- Returns: 1
-- include names
local owner = cjson.decode(ARGV[2]).owner
redis.call('HSET', callbacks, ARGV[1], ARGV[2])
redis.call('ZADD', expiry, ARGV[3], ARGV[1])
if owner ~= '' then redis.call('ZADD', owned, 0, owner .. ':' .. ARGV[1]) end
return 1
