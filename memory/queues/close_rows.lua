-- Functions for a script that closes rows in the same step as it does something else to the same user.
--
-- KEYS[k] to KEYS[k + 5] are `queues.claims.Claim.keys`; ARGV[a] and on are `queues.claims.closing_arguments`, of any
-- length, so that they are best put last. `k` and `a` are for the script to choose.
--
--   lease_held(k, a)  true while the claim holds: check it first, and write nothing when it is false.
--   demand_types(k)   fails where a key holds another type, which is to be before the first write.
--   close_rows(k, a)  closes the rows and returns how many were still waiting; a repeat of it changes nothing.
local PARKED = 2 ^ 52
local function server_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function server_ms()
  return math.floor(server_us() / 1000)
end

local function lease_held(k, a)
  local held = redis.call('HMGET', KEYS[k + 4], 'holder', 'fence')
  return held[1] == ARGV[a] and held[2] == ARGV[a + 1]
end

local function demand_types(k)
  for index, command in pairs({[0] = 'HLEN', 'ZCARD', 'HLEN', 'ZCARD', 'HLEN', 'STRLEN'}) do
    redis.call(command, KEYS[k + index])
  end
end

local function row_state(states, id)
  local found = redis.call('HGET', states, 's:' .. id)
  return found and cjson.decode(found) or {}
end

local function trim_rows(k, now, keep_ms, most)
  local rows, states, closed = KEYS[k], KEYS[k + 2], KEYS[k + 3]
  local before = string.format('%.0f', now - keep_ms)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', closed, '-inf', before, 'LIMIT', 0, most)) do
    redis.call('HINCRBY', states, 'c:' .. (row_state(states, id).state or ''), -1)
    redis.call('HDEL', states, 's:' .. id)
    redis.call('HDEL', rows, id)
    redis.call('ZREM', closed, id)
  end
end

local function close_rows(k, a)
  local pending, states, closed = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local fence, keep_ms, count, now = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), server_ms()
  local stamp, found = string.format('%.0f', now), 0
  for at = a + 4, a + 4 + 6 * (count - 1), 6 do
    local id, word = ARGV[at], ARGV[at + 1]
    local number = redis.call('ZSCORE', pending, id)
    if number then
      found = found + 1
      local state = row_state(states, id)
      if ARGV[at + 5] ~= '' then redis.call('HSET', states, 'n:' .. id, ARGV[at + 5]) end
      if word == 'retry' then
        if state.fence ~= fence then state.attempts = (state.attempts or 0) + 1 end
        state.crashes = nil
        if tonumber(number) >= PARKED then
          redis.call('ZADD', pending, string.format('%.0f', tonumber(number) - PARKED), id)
        end
      elseif word == 'needs_model' then
        if tonumber(number) < PARKED then
          redis.call('ZADD', pending, string.format('%.0f', tonumber(number) + PARKED), id)
        end
      else
        redis.call('ZREM', pending, id)
        redis.call('ZADD', closed, stamp, id)
        redis.call('HINCRBY', states, 'c:' .. word, 1)
        redis.call('HDEL', states, 'n:' .. id, 't:' .. id)
      end
      state.state, state.reason, state.plan, state.not_before = word, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
      state.at, state.fence = stamp, fence
      redis.call('HSET', states, 's:' .. id, cjson.encode(state))
    end
  end
  trim_rows(k, now, keep_ms, count + 16)
  if redis.call('EXISTS', pending) == 0 then
    for _, index in ipairs({0, 2, 3, 5}) do redis.call('PEXPIRE', KEYS[k + index], ARGV[a + 2]) end
  end
  return found
end
