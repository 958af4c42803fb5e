-- Notes what a task waits for of which no run has begun; since when it does so stays while it is the same.
-- KEYS: task
-- ARGV: generation, what it waits for, keep_ms
-- Returns: nil
local key, g = KEYS[1], ':' .. ARGV[1]
local known = redis.call('HMGET', key, 'state' .. g, 'waits_for' .. g)
-- A program publishes a task without noting it here.
local state = known[1] or 'accepted'
if state ~= 'accepted' and state ~= 'waiting' then return false end
local wait = cjson.decode(ARGV[2])
local is_read, earlier = pcall(cjson.decode, known[2] or '')
if is_read and type(earlier) == 'table' and earlier.kind == wait.kind and earlier.name == wait.name then
  wait.since = earlier.since
end
redis.call('HSET', key, 'state' .. g, state, 'waits_for' .. g, cjson.encode(wait))
if redis.call('PTTL', key) < tonumber(ARGV[3]) then redis.call('PEXPIRE', key, ARGV[3]) end
return false
