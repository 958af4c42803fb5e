-- Renews the lease of a flight.
-- KEYS: flight
-- ARGV: token, lease_ms
-- Returns: 1: still yours; 0: lost
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
