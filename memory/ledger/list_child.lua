-- Lists a child of a task, once, unless the list is full.
-- KEYS: children
-- ARGV: child's id, its agent and task, keep_ms, most children
-- Returns: nil
local member = ARGV[1] .. ' ' .. ARGV[2]
local count = redis.call('ZCARD', KEYS[1])
if count < tonumber(ARGV[4]) then redis.call('ZADD', KEYS[1], 'NX', count, member) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return false
