-- Reads the observation of a task and those before it.
-- KEYS: observations (a list), their tasks (a sorted set by number)
-- ARGV: count, task or nothing
-- Returns: {body of that task or nil, {body, ...} before that}
-- include observing
local count, upto = tonumber(ARGV[1]), redis.call('LLEN', KEYS[1])
local rank = ARGV[2] ~= '' and redis.call('ZRANK', KEYS[2], ARGV[2])
local own = rank and redis.call('LINDEX', KEYS[1], rank)
if own then upto = rank end
if count < 1 or upto < 1 then return {own, {}} end
return {own, redis.call('LRANGE', KEYS[1], math.max(0, upto - count), upto - 1)}
