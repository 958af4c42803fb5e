-- Defines what is done with an account; needs `now`, `checks`.
-- A rate ("w") is a hash: `t` counted within the last minute, `r` reserved, `s<n>` counted in the n-th half second,
--   `at` the last one looked at, `blocked` the ms until which the provider wants nothing, `q` actual over reserved,
--   `lag` ms from a reservation until it counts.
-- A budget ("c") is a hash: `s` spent, `u` unconfirmed, `r` reserved, `win` the day or month that s and u are of.
-- A count of calls under way ("l") is a set of calls.
local SLOT, MINUTE, DAY = 500, 60000, 86400000
-- Ms after its reservation at which a request has reached the provider, for which it counts then.
local REACHED = 2000
-- Ms for which a turn that has come keeps those behind it back.
local LATE = 10000
local function text(number) return string.format('%.0f', number) end
-- Returns a rate as it is now, without what was counted more than a minute ago.
local function read_rate(key)
  local slot = math.floor(now / SLOT)
  local found = redis.call('HMGET', key, 'at', 't', 'r', 'blocked', 'q', 'lag')
  local rate = {taken = tonumber(found[2] or '0') + tonumber(found[3] or '0'), blocked = tonumber(found[4] or '0'),
    usual = tonumber(found[5] or '1'), lag = tonumber(found[6] or REACHED)}
  if tonumber(found[1] or '-1') == slot then return rate end
  local all, gone = redis.call('HGETALL', key), 0
  for i = 1, #all, 2 do
    local s = string.match(all[i], '^s(%d+)$')
    if s and (tonumber(s) + 1) * SLOT + MINUTE <= now then
      gone = gone + tonumber(all[i + 1])
      redis.call('HDEL', key, all[i])
    end
  end
  redis.call('HSET', key, 'at', text(slot))
  redis.call('PEXPIRE', key, DAY)
  if gone ~= 0 then redis.call('HINCRBY', key, 't', text(-gone)) end
  rate.taken = rate.taken - gone
  return rate
end
local function count_rate(key, at, amount)
  if amount == 0 then return end
  redis.call('HINCRBY', key, 's' .. text(math.floor(math.min(now, at + REACHED) / SLOT)), text(amount))
  if redis.call('HINCRBY', key, 't', text(amount)) == amount then redis.call('PEXPIRE', key, DAY) end
end
-- Returns ms until there is room for `need` beside `ahead` that others are to have first.
local function rate_wait(key, rate, limit, need, ahead)
  if rate.blocked > now then return rate.blocked - now end
  local missing = need + ahead - (limit - rate.taken)
  if missing <= 0 then return 0 end
  local slots, all = {}, redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local s = string.match(all[i], '^s(%d+)$')
    if s then slots[#slots + 1] = {tonumber(s), tonumber(all[i + 1])} end
  end
  table.sort(slots, function(a, b) return a[1] < b[1] end)
  for _, slot in ipairs(slots) do
    missing = missing - slot[2]
    if missing <= 0 then return (slot[1] + 1) * SLOT + MINUTE - now end
  end
  return SLOT
end
local function budget_wait(key, limit, need, window, refill)
  local found = redis.call('HMGET', key, 's', 'u', 'r', 'win')
  if window ~= '' and found[4] ~= window then
    redis.call('HSET', key, 's', 0, 'u', 0, 'win', window)
    found[1], found[2] = '0', '0'
  end
  local left = limit - tonumber(found[1] or '0') - tonumber(found[2] or '0')
  if need <= left - tonumber(found[3] or '0') then return 0 end
  if need <= left then return SLOT end
  return tonumber(refill) or -1
end
-- Returns what a call reserved; nil for one that is not known, or a row that is none: workers write them.
local function read_call(calls, call)
  local is_read, record = pcall(cjson.decode, redis.call('HGET', calls, call) or '')
  if not is_read or type(record) ~= 'table' or type(record.accounts) ~= 'table' then return nil end
  if not is_key(record.book, 'book') or type(record.field) ~= 'string' then return nil end
  if not is_number(record.at) or not is_number(record.usd) then return nil end
  for _, account in ipairs(record.accounts) do
    if type(account) ~= 'table' or not is_account(account[1]) or not is_number(account[4]) then return nil end
  end
  return record
end
-- Releases what a call reserved. `used` holds what it took by measure, or is nil for one that may have taken anything.
local function close(call, record, used)
  for _, account in ipairs(record.accounts) do
    local key, kind, measure, need = account[1], account[2], account[3], account[4]
    local actual = used and used[measure] or need
    if kind == 'l' then
      redis.call('SREM', key, call)
    elseif record.lost then
      if kind == 'c' then
        redis.call('HINCRBY', key, 'u', text(-math.min(need, tonumber(redis.call('HGET', key, 'u') or '0'))))
        redis.call('HINCRBY', key, 's', text(actual))
      end
    else
      redis.call('HINCRBY', key, 'r', text(-need))
      if kind == 'w' then
        count_rate(key, record.at, actual)
        if used and actual > 0 then
          local known = redis.call('HMGET', key, 'q', 'lag')
          local ratio = 0.95 * tonumber(known[1] or '1') + 0.05 * math.min(1, actual / need)
          local lag = 0.95 * tonumber(known[2] or REACHED) + 0.05 * math.min(REACHED, now - record.at)
          redis.call('HSET', key, 'q', string.format('%.4f', ratio), 'lag', text(math.ceil(lag)))
        end
      else
        redis.call('HINCRBY', key, used and 's' or 'u', text(actual))
      end
    end
  end
end
-- Takes calls whose worker is gone off what is reserved; what they may have cost stays unconfirmed for a day.
local function expire(calls, leases)
  for _, call in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', text(now), 'LIMIT', 0, 20)) do
    local record = read_call(calls, call)
    -- One whose accounts cannot be counted on any more is none: it keeps nobody else from counting.
    if record and not record.lost and pcall(close, call, record, nil) then
      record.lost = true
      redis.call('HSET', calls, call, cjson.encode(record))
      redis.call('ZADD', leases, text(now + DAY), call)
      redis.pcall('HINCRBY', record.book, record.field .. '|unconfirmed', text(record.usd))
    else
      redis.call('HDEL', calls, call)
      redis.call('ZREM', leases, call)
    end
  end
end
