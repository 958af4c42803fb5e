-- Wakes the tasks that wait for room in accounts which have it now: as many as there is room for, in their order.
-- A waiter is a task and its generation: `waiters` has by each `needs`, accounts and how much of each, `at`, the ms when
--   it found no room, and once it was woken `again`, the ms from which it is so again; `looks` when it looks by itself,
--   in ms. One process at a time wakes them, and looks at a bounded number in each call.
-- KEYS: limits, waiters, looks; lined: accounts with a queue, all of one score; freed: waiters whose limit is gone or
--   covers others, by turn; moves: limits whose waiters are to be moved; waking: the process that wakes them
-- ARGV: now_ms or nothing, version of the limits, how many are woken at most, the process, the account behind which it
--   goes on, then for each limit on calls: name, kind, amount, window
-- Returns: nil: the limits are of another version; else the account behind which to go on, "" for a new round; 1 when
--   there is more to look at now, -1 when it is for another process to look; those that are woken
-- include clock
-- include checks
-- include accounts
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if version ~= ARGV[2] then return false end
-- Ms for which a process that fell silent keeps others from waking.
local LEASE = 3000
local holder = version ~= '0' and redis.call('GET', KEYS[7]) or ARGV[4]
if version == '0' or holder ~= ARGV[4] then return {'', -1} end
redis.call('SET', KEYS[7], ARGV[4], 'PX', LEASE)
-- Ms after which one that was woken and did not come is woken again, by which it looks by itself, and after which one
--   that looks no more is forgotten.
local AGAIN, SOON, GONE = 10000, 1000, 15 * MINUTE
-- Accounts, and waiters of one account, that are looked at in a call; with twice as many of all none is begun any more.
local PAGE = 500
-- include waiters
local WAITERS, LOOKS, LINED, FREED, MOVES = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
for i, kind in ipairs({'hash', 'zset', 'zset', 'zset', 'hash'}) do holds(KEYS[i + 1], kind) end
-- Returns up to `most` accounts behind the account `behind`, by name, whether there may be more, and how many were looked
--   at; what is none is taken off the list.
local function page_of(behind, most)
  local found, page = redis.call('ZRANGEBYLEX', LINED, behind and '(' .. behind or '-', '+', 'LIMIT', 0, most), {}
  local last = behind or ''
  for _, name in ipairs(found) do
    if not is_account(name) then
      redis.call('ZREM', LINED, name)
    elseif name > last then
      -- With scores that a worker wrote they are in no order: it goes on all the same.
      page[#page + 1], last = name, name
    end
  end
  return page, #found == most and last ~= behind, #found
end
-- include moving
local is_behind = move(PAGE)
local limits, rooms, woken, seen = {}, {}, {}, 0
for i = 6, #ARGV, 4 do limits[ARGV[i]] = {kind = ARGV[i + 1], amount = tonumber(ARGV[i + 2]), window = ARGV[i + 3]} end
local function limit_of(key) return limits[string.match(key, ':account:([^;]+)') or ''] end
local function read_room(key, limit)
  if limit.kind == 'l' then return limit.amount - redis.call('SCARD', key) end
  if limit.kind == 'w' then
    local rate = read_rate(key)
    return rate.blocked > now and 0 or limit.amount - rate.taken
  end
  local found = redis.call('HMGET', key, 's', 'u', 'r', 'win')
  local left = limit.amount - tonumber(found[3] or '0')
  if limit.window == (found[4] or '') then left = left - tonumber(found[1] or '0') - tonumber(found[2] or '0') end
  return left
end
local function room(key)
  if not rooms[key] then
    local limit, is_read, left = limit_of(key), true, math.huge
    -- An account that cannot be read leaves no room: no call is reserved on it either.
    if limit then is_read, left = pcall(read_room, key, limit) end
    rooms[key] = is_read and left == left and left or 0
  end
  return rooms[key]
end
local function take(row)
  for _, need in ipairs(row.needs) do rooms[need[1]] = room(need[1]) - need[2] end
end
for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', LOOKS, '-inf', text(now - GONE), 'LIMIT', 0, 100)) do
  forget(waiter, WAITERS, LOOKS, FREED)
end
-- Looks at one waiter in `queue`, of the account `line` or of none; returns whether those behind it may be looked at.
local function look(waiter, queue, line)
  local row, looks = read_waiter(WAITERS, waiter), tonumber(redis.call('ZSCORE', LOOKS, waiter) or nil)
  if row == false or not row and not line then
    redis.call('ZREM', queue, waiter)
    forget(waiter, WAITERS, LOOKS, FREED)
    return true
  end
  if not row or not looks or looks + AGAIN < now then return true end
  if looks <= now + SOON or row.again and row.again > now then
    -- It is on its way: those behind it are not to take its room.
    take(row)
    return true
  end
  for _, need in ipairs(row.needs) do
    if room(need[1]) < need[2] then return need[1] ~= line end
  end
  take(row)
  for _, need in ipairs(row.needs) do redis.pcall('ZADD', need[1] .. ':queue', 'XX', text(now), waiter) end
  row.again = now + AGAIN
  write_waiter(WAITERS, waiter, row)
  woken[#woken + 1] = waiter
  return true
end
local most = tonumber(ARGV[3])
local function walk(waiters, queue, line)
  for _, waiter in ipairs(waiters) do
    seen = seen + 1
    if #woken >= most or not look(waiter, queue, line) then return end
  end
end
walk(redis.call('ZRANGE', FREED, 0, PAGE - 1), FREED, nil)
local behind = ARGV[5] ~= '' and ARGV[5] or nil
local lines, is_more = page_of(behind, PAGE)
for _, key in ipairs(lines) do
  if #woken >= most or seen >= 2 * PAGE then
    is_more = true
    break
  end
  local queue, limit = key .. ':queue', limit_of(key)
  if not holds(queue, 'zset') then
    redis.call('ZREM', LINED, key)
  elseif not limit then
    -- Its worker has not read yet that the limit is gone.
    seen = seen + free(key, PAGE)
    is_behind = true
  elseif room(key) > 0 then
    -- Turns of a rate come one by one; those that wait for anything else, as there is room.
    local till = limit.kind == 'w' and text(now) or '+inf'
    walk(redis.call('ZRANGEBYSCORE', queue, '-inf', till, 'LIMIT', 0, PAGE), queue, key)
  end
  behind = key
end
local reply = {is_more and behind or '', (is_behind or is_more) and 1 or 0}
for _, waiter in ipairs(woken) do reply[#reply + 1] = waiter end
return reply
