-- Reads fields of a session.
-- KEYS: root, entries
-- ARGV: names of fields
-- Returns: {ms left or -1, living entries, value or nil, ...}; of more than a thousand all count that are there
-- include calls
-- include living_entries
local found = session_call('HMGET', KEYS[1], unpack(ARGV))
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return false end
-- An entry has two fields, its head and its body.
local count = session_call('HLEN', KEYS[2]) / 2
if count <= 1000 then
  local now = session_now()
  count = 0
  for _, field in ipairs(session_call('HKEYS', KEYS[2])) do
    if string.sub(field, 1, 1) == ':' and is_living(redis.call('HGET', KEYS[2], field), now) then count = count + 1 end
  end
end
return {left, math.floor(count), unpack(found, 1, #ARGV)}
