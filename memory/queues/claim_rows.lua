-- Claims the first rows that are due.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: holder, token, limit, lease_ms, now_ms
-- Returns: {look, fence, then six of each row: see `Row`}
-- include close_rows
-- include next_claim
-- include count_crashes
local rows, pending, states, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local now, held = server_ms(), redis.call('HMGET', lease, 'token', 'fence')
if held[1] and held[1] ~= ARGV[2] then return {look(now)} end
if not held[1] then count_crashes(pending, states) end
local due_by, ids, reply = math.max(now, tonumber(ARGV[5])), {}, {0, 0}
local order = '(' .. string.format('%.0f', PARKED)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', pending, '-inf', order, 'LIMIT', 0, ARGV[3])) do
  local state = row_state(states, id)
  local crashes = state.crashes or 0
  if (tonumber(state.not_before) or 0) > due_by or (crashes > 0 and #ids > 0) then break end
  ids[#ids + 1] = id
  local body, kept = redis.call('HGET', rows, id) or '', redis.call('HMGET', states, 'n:' .. id, 't:' .. id)
  local parts = {id, body, state.attempts or 0, crashes, kept[1], kept[2] or ''}
  for _, part in ipairs(parts) do reply[#reply + 1] = part end
  if crashes > 0 then break end
end
if #ids == 0 then return {look(now)} end
local fence = held[2] or string.format('%.0f', redis.call('INCR', KEYS[6]))
redis.call('HSET', lease, 'holder', ARGV[1], 'token', ARGV[2], 'fence', fence)
redis.call('PEXPIRE', lease, ARGV[4])
redis.call('HSET', states, 'open', cjson.encode({fence = fence, ids = ids}))
reply[1], reply[2] = now + tonumber(ARGV[4]), tonumber(fence)
return reply
