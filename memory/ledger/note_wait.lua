-- Notes what a task waits for of which no run has begun; since when it does so stays while it is the same.
-- KEYS: task
-- ARGV: generation, what it waits for
-- Returns: nil
local key, g = KEYS[1], ':' .. ARGV[1]
local known = redis.call('HMGET', key, 'state' .. g, 'waits_for' .. g)
if known[1] ~= 'accepted' and known[1] ~= 'waiting' then return false end
local wait = cjson.decode(ARGV[2])
local is_read, earlier = pcall(cjson.decode, known[2] or '')
if is_read and type(earlier) == 'table' and earlier.kind == wait.kind and earlier.name == wait.name then
  wait.since = earlier.since
end
redis.call('HSET', key, 'waits_for' .. g, cjson.encode(wait))
return false
