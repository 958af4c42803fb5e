-- Renews a claim.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: holder, fence, lease_ms
-- Returns: 1: still held; 0: lost
-- include close_rows
if not lease_held(1, 1) then return 0 end
return redis.call('PEXPIRE', KEYS[5], ARGV[3])
