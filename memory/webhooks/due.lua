-- Lists hosts with webhooks that are due, and drops addresses and ids past their time.
-- KEYS: of the outbox
-- ARGV: ms since 1970, how many at most
-- Returns: hosts, the longest due first
-- include names
for _, id in ipairs(redis.call('ZRANGE', expiry, '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, 1000)) do
  drop(id)
  redis.call('ZREM', expiry, id)
end
return redis.call('ZRANGE', hosts, '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
