-- Lists rows: those that wait, oldest first, then closed ones, newest first.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: limit
-- Returns: {id, number or ms, body, state, note, ...}
local found, limit = {}, tonumber(ARGV[1])
local function read(listed)
  for at = 1, #listed, 2 do
    local id = listed[at]
    local body = redis.call('HGET', KEYS[1], id) or ''
    local state = redis.call('HMGET', KEYS[3], 's:' .. id, 'n:' .. id)
    for _, part in ipairs({id, listed[at + 1], body, state[1] or '{}', state[2] or ''}) do found[#found + 1] = part end
  end
  limit = limit - #listed / 2
end
read(redis.call('ZRANGE', KEYS[2], 0, limit - 1, 'WITHSCORES'))
if limit > 0 then read(redis.call('ZREVRANGE', KEYS[4], 0, limit - 1, 'WITHSCORES')) end
return found
