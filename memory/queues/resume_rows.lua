-- Puts parked rows of one state back into the order.
-- KEYS: the six of `memory.keys.QueueKeys`: rows, pending, states, closed, lease, numbers
-- ARGV: state, limit
-- Returns: how many came back into the order
-- include close_rows
local pending, states, resumed = KEYS[2], KEYS[3], 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', pending, string.format('%.0f', PARKED), '+inf', 'LIMIT', 0, ARGV[2])) do
  local state = row_state(states, id)
  if state.state == ARGV[1] then
    state.state, state.at, state.not_before = nil, nil, nil
    redis.call('HSET', states, 's:' .. id, cjson.encode(state))
    local number = tonumber(redis.call('ZSCORE', pending, id)) - PARKED
    redis.call('ZADD', pending, string.format('%.0f', number), id)
    resumed = resumed + 1
  end
end
return resumed
