-- Renews a lease.
-- ARGV: holder, fence, lease_ms
-- Returns: {until, supervisor}; {}: lost
-- include run_calls
local held = redis.call('HMGET', lease, 'holder', 'fence')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return {} end
redis.call('PEXPIRE', lease, ARGV[3])
if session_now() - tonumber(held[2]) / 1000 > 600000 then redis.call('HDEL', root, 'lapses') end
return {session_now() + tonumber(ARGV[3]), redis.call('HGET', root, 'supervisor_id')}
