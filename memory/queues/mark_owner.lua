-- Notes that an owner has something to claim now.
-- KEYS: owners
-- ARGV: token
-- Returns: nil
local time, found = redis.call('TIME'), redis.call('ZSCORE', KEYS[1], ARGV[1])
local score = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000
if found and tonumber(found) <= score then score = tonumber(found) - 0.001 end
redis.call('ZADD', KEYS[1], string.format('%.3f', score), ARGV[1])
return false
