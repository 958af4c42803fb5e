-- Gives the lease of a flight back, and wakes who waits for it.
-- KEYS: flight
-- ARGV: token, channel
-- Returns: 1: given back; 0: was not yours
local held = redis.call('HMGET', KEYS[1], 'owner', 'awaited')
if held[1] ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if held[2] then redis.call('PUBLISH', ARGV[2], KEYS[1]) end
return 1
