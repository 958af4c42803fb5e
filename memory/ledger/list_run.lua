-- Lists runs of one agent, when they open and when they end; removes some that are past their time, or too many, if it is to.
-- KEYS: the list, rows, open ones, then a set for each user
-- ARGV: how many are removed at most, ms for which an ended run is kept, ms for which an open one is, most runs, then for each
--   run: its id, ms since 1970 when it was created, its row, whether it has ended, which of the sets is its user's, 0 for none;
--   of one that has ended 1, or 2 where it is not known yet that the ledger took that end: it stays among the open ones
-- Returns: nil
local trimmed, keep, keep_open = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local DAY = 86400000
local clock
local function now()
  if clock then return clock end
  local time = redis.call('TIME')
  clock = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  return clock
end
local function spell(ms) return string.format('%.0f', ms) end
-- A later generation replaces an earlier one, and an end what was open; what was forgotten stays. An end that is older than
-- the ledger keeps it is none: the task may begin anew.
local function stands(earlier, row, has_ended)
  local known, state = string.match(earlier, '^{"g":(%d+),"s":"(%a+)"')
  local own = string.match(row, '^{"g":(%d+)')
  if not known or tonumber(own) > tonumber(known) then return false end
  if tonumber(own) < tonumber(known) then return true end
  if state == 'accepted' then return false end
  if has_ended then return state == 'forgotten' end
  local at = string.match(earlier, '"e":(%d+)')
  return not at or tonumber(at) >= now() - keep
end
local function unlist(id)
  redis.call('ZREM', KEYS[1], id)
  -- The row of an open one is found by the list of these.
  if not redis.call('ZSCORE', KEYS[3], id) then redis.call('HDEL', KEYS[2], id) end
end
local function trim()
  local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[4])
  if over > 0 then
    for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, math.min(over, trimmed) - 1)) do unlist(id) end
  end
  local past = now() - keep
  for _, id in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', spell(past), 'BYSCORE', 'LIMIT', 0, trimmed)) do
    local ended = string.match(redis.call('HGET', KEYS[2], id) or '"e":0', '"e":(%d+)')
    if ended and tonumber(ended) < past then unlist(id) end
  end
  for place = 4, #KEYS do
    for _, id in ipairs(redis.call('ZRANGE', KEYS[place], '-inf', spell(now()), 'BYSCORE', 'LIMIT', 0, 2)) do
      redis.call('ZREM', KEYS[place], id)
    end
  end
  for place = 1, 3 do redis.call('PEXPIRE', KEYS[place], spell(keep_open + DAY)) end
end
local function add(lists, name, ...)
  local list = lists[name] or {}
  lists[name] = list
  for _, word in ipairs({...}) do list[#list + 1] = word end
end
-- Of all runs at once, one command each: a command costs more than what it does for one of them.
local function write()
  local ids = {}
  for at = 5, #ARGV, 5 do ids[#ids + 1] = ARGV[at] end
  local found, known = redis.call('HMGET', KEYS[2], unpack(ids)), {}
  for place, id in ipairs(ids) do known[id] = found[place] end
  local rows, listed, opened, theirs, longest = {}, {}, {}, {}, {}
  for place, id in ipairs(ids) do
    local at = 5 * place
    local created, row, ended, set = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
    local has_ended = ended ~= '0'
    local earlier = known[id]
    if not (earlier and stands(earlier, row, has_ended)) then
      known[id] = row
      rows[#rows + 1], rows[#rows + 2] = id, row
      listed[#listed + 1], listed[#listed + 2] = created, id
      if not has_ended then
        opened[id] = created
      elseif ended == '1' and earlier then
        opened[id] = false
      end
      if set ~= '0' then
        local left = has_ended and keep or keep_open
        add(theirs, KEYS[3 + set], spell(now() + left), id)
        longest[KEYS[3 + set]] = math.max(left, longest[KEYS[3 + set]] or 0)
      end
    end
  end
  if #rows > 0 then
    redis.call('HSET', KEYS[2], unpack(rows))
    redis.call('ZADD', KEYS[1], unpack(listed))
  end
  local changes = {}
  for id, created in pairs(opened) do
    if created then add(changes, 'ZADD', created, id) else add(changes, 'ZREM', id) end
  end
  for command, words in pairs(changes) do redis.call(command, KEYS[3], unpack(words)) end
  for set, words in pairs(theirs) do
    redis.call('ZADD', set, unpack(words))
    local left = longest[set]
    if redis.call('PTTL', set) < left then redis.call('PEXPIRE', set, spell(left + DAY)) end
  end
  if trimmed > 0 then trim() end
end
local is_written, problem = pcall(write)
if is_written then return false end
local said = type(problem) == 'table' and problem.err or tostring(problem)
if not string.find(said, 'WRONGTYPE ') then return redis.error_reply(said) end
-- A key that holds another type is not ours: it is replaced rather than fail every task of the agent.
for place, key in ipairs(KEYS) do
  local found = redis.call('TYPE', key).ok
  if found ~= (place == 2 and 'hash' or 'zset') then redis.call('DEL', key) end
end
write()
return false
