-- Defines `move`, see wake: those that waited when limits changed are moved, some at a time; needs `waiters`, `accounts`, `page_of`.
-- `moves` has `next`: the limits that changed since it was looked at last, `under_way`: those of which accounts are moved
--   now, up to the account `done`, and within it up to the turn `turn`.
-- Frees up to `most` of those that wait for an account that covers others now, or none; returns how many were looked at.
local function free(account, most)
  local queue, first = account .. ':queue', {}
  if holds(queue, 'zset') then first = redis.call('ZRANGE', queue, 0, most - 1, 'WITHSCORES') end
  for i = 1, #first, 2 do
    local waiter, row = first[i], read_waiter(WAITERS, first[i])
    -- Without a row it is no task, or that of a worker that notes nothing: it waits anew.
    if row then
      local needs = {}
      for _, need in ipairs(row.needs) do
        if need[1] ~= account then needs[#needs + 1] = need end
      end
      row.needs = needs
      write_waiter(WAITERS, waiter, row)
      redis.call('ZADD', FREED, first[i + 1], waiter)
    elseif row == false then
      forget(waiter, WAITERS, LOOKS, FREED)
    end
    redis.call('ZREM', queue, waiter)
  end
  if #first / 2 < most then redis.call('ZREM', LINED, account) end
  return #first / 2
end
-- Gives up to `most` of those that wait for a rate their turn under its new amount, at once while there is room, else in
-- proportion; returns how many were looked at.
local function pace(account, begun, change, most)
  local queue, factor = account .. ':queue', change.was / change.is
  if not holds(queue, 'zset') then return 0 end
  if not begun.left then
    local is_read, rate = pcall(read_rate, account)
    begun.left = is_read and rate.blocked <= now and change.is - rate.taken or 0
  end
  -- None is met twice: turns become earlier behind where it looks, and later ones are looked at from the end.
  local found
  if factor <= 1 then
    local from = begun.turn and '(' .. begun.turn or '-inf'
    found = redis.call('ZRANGEBYSCORE', queue, from, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  else
    local from = begun.turn and '(' .. begun.turn or '+inf'
    found = redis.call('ZREVRANGEBYSCORE', queue, from, '-inf', 'WITHSCORES', 'LIMIT', 0, most)
  end
  for i = 1, #found, 2 do
    local waiter, due, need = found[i], tonumber(found[i + 1]), 0
    local row = read_waiter(WAITERS, waiter)
    if not row then
      redis.call('ZREM', queue, waiter)
      if row == false then forget(waiter, WAITERS, LOOKS, FREED) end
    elseif row.at <= begun.at then
      for _, one in ipairs(row.needs) do
        if one[1] == account then need = one[2] end
      end
      begun.left = begun.left - need
      local turn = begun.left >= 0 and now or begun.at + (due - begun.at) * factor
      if due > now then redis.call('ZADD', queue, text(math.max(begun.at, turn)), waiter) end
    end
    begun.turn = found[i + 1]
  end
  return #found / 2
end
-- Looks at up to `most` waiters, and accounts, of limits that changed; returns whether there are more.
local function move(most)
  local stored = redis.call('HGET', MOVES, 'under_way')
  local begun = stored or redis.call('HGET', MOVES, 'next')
  if not begun then return false end
  begun = cjson.decode(begun)
  while most > 0 do
    local account = begun.account
    if not account then
      local page, is_more, seen = page_of(begun.done, most)
      for _, name in ipairs(page) do
        begun.done = name
        if begun.limits[string.match(name, ':account:([^;]+)') or ''] then
          begun.account = name
          break
        end
      end
      most = most - math.max(1, seen)
      if not begun.account and not is_more then
        redis.call('HDEL', MOVES, stored and 'under_way' or 'next')
        return stored and redis.call('HEXISTS', MOVES, 'next') == 1
      end
    else
      local change, seen, wanted = begun.limits[string.match(account, ':account:([^;]+)')], 0, most
      if change.was then
        seen = pace(account, begun, change, wanted)
      else
        seen = free(account, wanted)
      end
      most = most - seen
      if seen < wanted then begun.account, begun.turn, begun.left = nil, nil, nil end
    end
  end
  if not stored then redis.call('HDEL', MOVES, 'next') end
  redis.call('HSET', MOVES, 'under_way', cjson.encode(begun))
  return true
end
