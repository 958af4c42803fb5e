-- Lists records that are due, and leases them.
-- KEYS: due
-- ARGV: ms since 1970, ms of a lease, how many at most
-- Returns: ids, the longest due first, due again once the lease is over
local found = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3])
for _, id in ipairs(found) do
  redis.call('ZADD', KEYS[1], string.format('%.0f', tonumber(ARGV[1]) + tonumber(ARGV[2])), id)
end
return found
