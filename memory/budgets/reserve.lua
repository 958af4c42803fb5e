-- Reserves the worst case of a call on every account, or says which one has no room and when to come back.
-- KEYS: calls, leases, accounts: ms of the last use by key; waiters, looks, lined, freed: see wake; then for each account
--   its counts and its queue
-- ARGV: now_ms or nothing, call, waiter, lease_ms, book, field, usd, ms after which the task of the call looks again at
--   the latest, or nothing where no task waits; then for each account: kind, measure, limit, need, window, ms until it
--   refills or nothing, 1 when a call that finds no room waits for its turn
-- Returns: {1}: reserved; {0, number of the account, ms}: no room until then, -1 for ever
-- include clock
-- include checks
-- include accounts
local call, waiter = ARGV[2], ARGV[3]
expire(KEYS[1], KEYS[2])
if redis.call('HEXISTS', KEYS[1], call) == 1 then return {1} end
local record = {at = now, book = ARGV[5], field = ARGV[6], usd = tonumber(ARGV[7]), accounts = {}}
local full, longest, queues, used = 0, 0, {}, {}
for i = 1, (#KEYS - 7) / 2 do
  local key, queue, a = KEYS[2 * i + 6], KEYS[2 * i + 7], 7 * i + 1
  local kind, limit, need = ARGV[a + 1], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  record.accounts[i] = {key, kind, ARGV[a + 2], need}
  if need > limit then return {0, i, -1} end
  -- Those who wait go first, in their order. One that does not come back is waited for as long as workers may be late,
  -- and has lost its place after 10 min: were it sooner, all who come late would wait anew, and hardly a call would go.
  local others, due = redis.call('ZCARD', queue), nil
  if others > 0 then
    others = others - redis.call('ZREMRANGEBYSCORE', queue, '-inf', text(now - 10 * MINUTE))
    due = tonumber(redis.call('ZSCORE', queue, waiter) or nil)
  end
  if due then queues[#queues + 1] = queue end
  local wait, rate
  if kind == 'w' then
    local ahead = due and redis.call('ZCOUNT', queue, text(now - LATE), '(' .. text(math.min(due, now))) or 0
    rate = read_rate(key)
    wait = rate_wait(key, rate, limit, need, ahead * rate.usual * need)
  elseif kind == 'c' then wait = budget_wait(key, limit, need, ARGV[a + 5], ARGV[a + 6])
  else wait = redis.call('SCARD', key) < limit and 0 or SLOT / 2 end
  if wait < 0 then return {0, i, -1} end
  -- What leaves room in a budget is nobody's turn: whoever looks first takes it.
  if due and due > now + SLOT / 2 and (kind ~= 'c' or wait > 0) then
    wait = math.max(wait, due - now)
  elseif wait > 0 and due then
    if kind ~= 'w' or due < now - LATE then redis.call('ZADD', queue, text(now + wait), waiter) end
  elseif (wait > 0 or (not due and others > 0)) and ARGV[a + 7] == '1' then
    local last = tonumber(redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or '0')
    local pace = 2
    if kind == 'w' then
      -- Tokens are less than reserved by more than the mean now and then: turns a little closer leave none unused.
      local closer = ARGV[a + 2] == 'requests' and 1 or 0.9
      -- What a call takes comes back a minute after it reached the provider, at the end of that slot.
      pace = closer * rate.usual * need * (MINUTE + SLOT + rate.lag) / limit
    end
    due = math.ceil(math.max(now + wait, last + pace))
    wait = math.max(1, due - now)
    redis.call('ZADD', queue, text(due), waiter)
    redis.call('PEXPIRE', queue, text(wait + DAY))
    if ARGV[8] ~= '' then redis.call('ZADD', KEYS[6], 0, key) end
  end
  if wait > longest then full, longest = i, wait end
end
if full > 0 then
  if ARGV[8] ~= '' then
    local needs = {}
    for i, account in ipairs(record.accounts) do needs[i] = {account[1], account[4]} end
    redis.call('HSET', KEYS[4], waiter, cjson.encode({needs = needs, at = now}))
    redis.call('ZADD', KEYS[5], text(now + math.min(longest, tonumber(ARGV[8]))), waiter)
    redis.call('ZREM', KEYS[7], waiter)
  end
  return {0, full, math.ceil(longest)}
end
for i, account in ipairs(record.accounts) do
  local key, kind = account[1], account[2]
  if kind == 'l' then redis.call('SADD', key, call) else redis.call('HINCRBY', key, 'r', text(account[4])) end
  if kind ~= 'w' then redis.call('PEXPIRE', key, 40 * DAY) end
  used[2 * i - 1], used[2 * i] = text(now), key
end
for _, queue in ipairs(queues) do redis.call('ZREM', queue, waiter) end
if ARGV[8] ~= '' and redis.call('HDEL', KEYS[4], waiter) == 1 then
  redis.call('ZREM', KEYS[5], waiter)
  redis.call('ZREM', KEYS[7], waiter)
end
redis.call('ZADD', KEYS[3], unpack(used))
if redis.call('ZCARD', KEYS[3]) > 10000 then redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -10001) end
redis.call('HSET', KEYS[1], call, cjson.encode(record))
redis.call('ZADD', KEYS[2], text(now + tonumber(ARGV[4])), call)
return {1}
