-- Defines `key` and `g`, and takes the lease from the run ARGV[2] of the generation ARGV[1]; 0 when it has none.
-- include entry
local g, generation = ':' .. ARGV[1], tonumber(ARGV[1])
local last = redis.call('HMGET', key, 'token' .. g, 'leased_until' .. g)
if last[1] ~= ARGV[2] or not last[2] then return 0 end
redis.call('HDEL', key, 'leased_until' .. g)
