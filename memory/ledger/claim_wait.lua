-- Claims an open wait that is to be looked at: nobody else is given it until the lease is over.
-- KEYS: open waits
-- ARGV: its name, now_ms, lease_until_ms
-- Returns: 1: claimed; 0: not due
local at = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not at or tonumber(at) > tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return 1
