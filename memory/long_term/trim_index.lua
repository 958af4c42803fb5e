-- Lets go of entries in an index whose time is over.
-- KEYS: index
-- ARGV: the ms before which they ended, how many at most
-- Returns: how many went
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
for _, member in ipairs(gone) do redis.call('ZREM', KEYS[1], member) end
return #gone
