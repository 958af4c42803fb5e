-- Gives a claim back.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: holder, fence
-- Returns: {look}; {} when it was lost
-- include close_rows
-- include next_claim
if not lease_held(1, 1) then return {} end
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[3], 'open')
return {look(server_ms())}
