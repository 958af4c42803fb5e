-- Lists owners that have something to claim.
-- KEYS: owners
-- ARGV: now_ms, limit
-- Returns: tokens of owners
local time = redis.call('TIME')
local now = math.max(tonumber(ARGV[1]), tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', now), 'LIMIT', 0, ARGV[2])
