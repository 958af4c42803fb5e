-- Wakes the tasks that wait for room in accounts which have it now: as many as there is room for, in their order.
-- A waiter is a task and its generation: `waiters` has by each `needs`, accounts and how much of each, `at`, the ms when
--   it found no room, and when it was `woken` since; `looks` when it looks by itself, in ms.
-- KEYS: limits, waiters, looks; lined: accounts with a queue; freed: waiters whose limit is gone or covers others, by turn
-- ARGV: now_ms or nothing, version of the limits, how many are woken at most, then for each limit on calls: name, kind,
--   amount, window
-- Returns: nil: the limits are of another version; else those that are woken
-- include clock
-- include accounts
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[2] then return false end
-- Ms after which one that was woken and did not come is woken again, by which it looks by itself, and after which one
--   that looks no more is forgotten.
local AGAIN, SOON, GONE = 10000, 1000, 15 * MINUTE
-- Waiters of one account that are looked at, once.
local PAGE = 1000
local limits, rooms, woken = {}, {}, {}
for i = 4, #ARGV, 4 do limits[ARGV[i]] = {kind = ARGV[i + 1], amount = tonumber(ARGV[i + 2]), window = ARGV[i + 3]} end
local function limit_of(key) return limits[string.match(key, ':account:([^;]+)')] end
local function room(key)
  if rooms[key] then return rooms[key] end
  local limit, left = limit_of(key), math.huge
  if limit and limit.kind == 'l' then
    left = limit.amount - redis.call('SCARD', key)
  elseif limit and limit.kind == 'w' then
    local rate = read_rate(key)
    left = rate.blocked > now and 0 or limit.amount - rate.taken
  elseif limit then
    local found = redis.call('HMGET', key, 's', 'u', 'r', 'win')
    left = limit.amount - tonumber(found[3] or '0')
    if limit.window == (found[4] or '') then left = left - tonumber(found[1] or '0') - tonumber(found[2] or '0') end
  end
  rooms[key] = left
  return left
end
local function take(record)
  for _, need in ipairs(record.needs) do rooms[need[1]] = room(need[1]) - tonumber(need[2]) end
end
-- include waiters
for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', text(now - GONE), 'LIMIT', 0, 100)) do
  forget(waiter, KEYS[2], KEYS[3], KEYS[5])
end
-- Looks at one waiter of the account `line`, or of none; returns whether those behind it may be looked at.
local function look(waiter, line)
  local stored, looks = redis.call('HGET', KEYS[2], waiter), tonumber(redis.call('ZSCORE', KEYS[3], waiter) or nil)
  if not stored or not looks then return true end
  local record = cjson.decode(stored)
  if looks + AGAIN < now then return true end
  if looks <= now + SOON or record.woken and record.woken + AGAIN > now then
    -- It is on its way: those behind it are not to take its room.
    take(record)
    return true
  end
  for _, need in ipairs(record.needs) do
    if room(need[1]) < tonumber(need[2]) then return need[1] ~= line end
  end
  take(record)
  for _, need in ipairs(record.needs) do
    redis.call('ZADD', need[1] .. ':queue', 'XX', text(now), waiter)
  end
  record.woken = now
  redis.call('HSET', KEYS[2], waiter, cjson.encode(record))
  woken[#woken + 1] = waiter
  return true
end
local most = tonumber(ARGV[3])
local function walk(waiters, line)
  for _, waiter in ipairs(waiters) do
    if #woken >= most or not look(waiter, line) then return end
  end
end
walk(redis.call('ZRANGE', KEYS[5], 0, PAGE - 1), nil)
for _, key in ipairs(redis.call('SMEMBERS', KEYS[4])) do
  local queue, limit = key .. ':queue', limit_of(key)
  if redis.call('EXISTS', queue) == 0 then
    redis.call('SREM', KEYS[4], key)
  elseif limit and room(key) > 0 then
    -- Turns of a rate come one by one; those that wait for anything else, as there is room.
    local till = limit.kind == 'w' and text(now) or '+inf'
    walk(redis.call('ZRANGEBYSCORE', queue, '-inf', till, 'LIMIT', 0, PAGE), key)
  end
end
return woken
