-- Stores other limits, unless somebody changed them meanwhile; `wake` then wakes those that they leave room for.
-- KEYS: limits, their history, accounts; waiters, lined, freed: see wake
-- ARGV: now_ms or nothing, the version that was read, "" for whatever stands there; limits as JSON, who, when, how many
--   versions stay
-- Returns: the new version, or -1
-- include clock
-- include accounts
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if ARGV[2] ~= '' and ARGV[2] ~= version then return -1 end
-- A limit of other units than before begins anew; one that covers others too is another one to those that wait.
local function read(limits)
  local found = {}
  for _, one in ipairs(limits and cjson.decode(limits).limits or {}) do
    for _, unit in ipairs({'requests', 'tokens', 'usd', 'at_once'}) do
      if one[unit] and one[unit] ~= cjson.null then
        local units = unit .. tostring(one.every)
        local covers = {}
        for i, name in ipairs({'model', 'tenant', 'user', 'agent', 'task'}) do covers[i] = one[name] or '' end
        found[one.name] = {units = units, amount = tonumber(one[unit]) * (unit == 'usd' and 1e9 or 1), every = one.every,
          covers = units .. cjson.encode(covers)}
      end
    end
  end
  return found
end
local before, new = read(redis.call('HGET', KEYS[1], 'limits')), tonumber(version) + 1
redis.call('HSET', KEYS[1], 'version', new, 'limits', ARGV[3], 'who', ARGV[4], 'when', ARGV[5])
redis.call('LPUSH', KEYS[2], cjson.encode({version = new, who = ARGV[4], when = ARGV[5], limits = ARGV[3]}))
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[6]) - 1)
local after = read(ARGV[3])
local function limits_of(account)
  local name = string.match(account, ':account:([^;]+)')
  return before[name] or {}, after[name] or {}
end
-- Returns by waiter when its turn is under another rate: at once while there is room, else in proportion.
local function turns_of(account, waiting, old, limit)
  local rate, turns = read_rate(account), {}
  local left = rate.blocked > now and 0 or limit.amount - rate.taken
  for i = 1, #waiting, 2 do
    local waiter, due, need = waiting[i], tonumber(waiting[i + 1]), 0
    local stored = redis.call('HGET', KEYS[4], waiter)
    for _, one in ipairs(stored and cjson.decode(stored).needs or {}) do
      if one[1] == account then need = tonumber(one[2]) end
    end
    left = left - need
    turns[waiter] = due <= now and due or left >= 0 and now or now + (due - now) * old.amount / limit.amount
  end
  return turns
end
for _, account in ipairs(redis.call('SMEMBERS', KEYS[5])) do
  local queue, old, limit = account .. ':queue', limits_of(account)
  local waiting = redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  local is_other = not limit.covers or old.covers ~= limit.covers
  local is_faster = not is_other and limit.every == 'minute' and old.amount ~= limit.amount
  local turns = is_faster and turns_of(account, waiting, old, limit) or {}
  for i = 1, #waiting, 2 do
    local waiter, due = waiting[i], waiting[i + 1]
    local stored = redis.call('HGET', KEYS[4], waiter)
    if not stored then
      -- No task, or that of a worker that notes nothing: it waits anew.
      redis.call('ZREM', queue, waiter)
    elseif is_other then
      local record, needs = cjson.decode(stored), {}
      for _, need in ipairs(record.needs) do
        if need[1] ~= account then needs[#needs + 1] = need end
      end
      record.needs = needs
      redis.call('HSET', KEYS[4], waiter, cjson.encode(record))
      redis.call('ZADD', KEYS[6], due, waiter)
    elseif turns[waiter] then
      redis.call('ZADD', queue, text(turns[waiter]), waiter)
    end
  end
  if is_other then
    redis.call('UNLINK', queue)
    redis.call('SREM', KEYS[5], account)
  end
end
for _, account in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
  local old, limit = limits_of(account)
  if redis.call('SISMEMBER', KEYS[5], account) == 0 then redis.call('UNLINK', account .. ':queue') end
  if old.units ~= limit.units then
    redis.call('UNLINK', account)
    redis.call('ZREM', KEYS[3], account)
  end
end
return new
