-- Defines `look(now)`: from when it pays to claim, as `scripts.py` says.
local function look(now)
  local left = redis.call('PTTL', KEYS[5])
  if left > 0 then return now + left end
  local first = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. string.format('%.0f', PARKED), 'LIMIT', 0, 1)[1]
  if not first then return redis.call('EXISTS', KEYS[2]) == 1 and PARKED or -1 end
  local not_before = tonumber(row_state(KEYS[3], first).not_before) or 0
  return not_before > now and not_before or 0
end
