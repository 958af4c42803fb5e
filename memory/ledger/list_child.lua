-- Lists a child of a task, once, unless the list is full.
-- KEYS: of entry.lua for the parent, and its children in layout 1 where that is read
-- ARGV: of entry.lua, child's id, its agent and task, keep_ms, most children
-- Returns: nil
-- include entry
local children = pointer and key .. ':children' or KEYS[2]
local member = ARGV[1] .. ' ' .. ARGV[2]
local count = redis.call('ZCARD', children)
if count < tonumber(ARGV[4]) then redis.call('ZADD', children, 'NX', count, member) end
redis.call('PEXPIRE', children, ARGV[3])
return false
