-- Defines `count_crashes(pending, states)`: counts a crash for the rows of a claim that ended without a word.
local function count_crashes(pending, states)
  local open = redis.call('HGET', states, 'open')
  if not open then return end
  local run = cjson.decode(open)
  for _, id in ipairs(run.ids) do
    local state, number = row_state(states, id), redis.call('ZSCORE', pending, id)
    if number and state.fence ~= run.fence then
      state.crashes = (state.crashes or 0) + 1
      if #run.ids == 1 then state.attempts = (state.attempts or 0) + 1 end
      redis.call('HSET', states, 's:' .. id, cjson.encode(state))
    end
  end
  redis.call('HDEL', states, 'open')
end
