-- Ends a lease.
-- ARGV: holder, fence
-- Returns: {supervisor}; {}: was not yours
-- include run_calls
if redis.call('HGET', root, 'fence') == ARGV[2] then redis.call('HDEL', root, 'claimed_by') end
local held = redis.call('HMGET', lease, 'holder', 'fence')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return {} end
redis.call('UNLINK', lease)
return {redis.call('HGET', root, 'supervisor_id')}
