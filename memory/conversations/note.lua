-- Adds the observation of a task.
-- KEYS: observations (a list), their tasks (a sorted set by number)
-- ARGV: keep, keep_ms, task, body
-- Returns: 1: added; 0: known
-- include observing
if redis.call('ZSCORE', KEYS[2], ARGV[3]) then return 0 end
local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or '0'
redis.call('ZADD', KEYS[2], string.format('%.0f', tonumber(newest) + 1), ARGV[3])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[1]))
redis.call('RPUSH', KEYS[1], ARGV[4])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[1]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
