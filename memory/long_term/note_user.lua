-- Notes which user an entry belongs to, until it expires.
-- KEYS: users
-- ARGV: entry key, expires_at_ms or +inf, now_ms
-- Returns: nil
local key, now = KEYS[1], ARGV[3]
redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now)
redis.call('ZADD', key, ARGV[2], ARGV[1])
local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
if last == 'inf' then
  redis.call('PERSIST', key)
else
  redis.call('PEXPIRE', key, string.format('%.0f', math.max(1, tonumber(last) - tonumber(now))))
end
return false
