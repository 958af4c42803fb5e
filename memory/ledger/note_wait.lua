-- Notes what a task waits for of which no run has begun; since when it does so stays while it is the same.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, what it waits for, keep_ms
-- Returns: nil
-- include entry
local g, generation = ':' .. ARGV[1], tonumber(ARGV[1])
-- include own
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
keep(ARGV[3])
return false
