-- Looks when it pays to claim.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- Returns: {look, number of the first row or 0}
-- include close_rows
-- include next_claim
local order = '(' .. string.format('%.0f', PARKED)
local first = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', order, 'WITHSCORES', 'LIMIT', 0, 1)
return {look(server_ms()), tonumber(first[2] or '0')}
