-- Reads fields of a session.
-- KEYS: root, entries
-- ARGV: names of fields
-- Returns: {ms left or -1, stored entries, value or nil, ...}
-- include calls
local found = session_call('HMGET', KEYS[1], unpack(ARGV))
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return false end
return {left, math.floor(session_call('HLEN', KEYS[2]) / 2), unpack(found, 1, #ARGV)}
