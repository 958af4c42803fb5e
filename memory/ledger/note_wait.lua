-- Notes what a task waits for of which no run has begun.
-- KEYS: task
-- ARGV: generation, what it waits for
-- Returns: nil
local key, g = KEYS[1], ':' .. ARGV[1]
local state = redis.call('HGET', key, 'state' .. g)
if state == 'accepted' or state == 'waiting' then redis.call('HSET', key, 'waits_for' .. g, ARGV[2]) end
return false
