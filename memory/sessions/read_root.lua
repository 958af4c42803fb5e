-- Reads fields of a session.
-- KEYS: root, entries
-- ARGV: names of fields
-- Returns: {ms left or -1, living entries, value or nil, ...}
-- include calls
-- include living_entries
local found = session_call('HMGET', KEYS[1], unpack(ARGV))
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return false end
local count, now = 0, session_now()
for _, field in ipairs(session_call('HKEYS', KEYS[2])) do
  if string.sub(field, 1, 1) == ':' and is_living(redis.call('HGET', KEYS[2], field), now) then count = count + 1 end
end
return {left, count, unpack(found, 1, #ARGV)}
