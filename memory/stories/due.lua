-- Lists analyses that are due, and leases them.
-- KEYS: index
-- ARGV: ms from now, how many at most
-- Returns: members, the longest due first, due again then
-- include calls
story_mend(1, 'zset')
local now = story_now()
local found = redis.call('ZRANGE', KEYS[1], '-inf', story_ms(now), 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, member in ipairs(found) do redis.call('ZADD', KEYS[1], story_ms(now + tonumber(ARGV[1])), member) end
return found
