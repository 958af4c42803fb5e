-- Lists runs of one agent, when they open and when they end; removes a few that are past their time, or too many.
-- KEYS: the list, rows, open ones, then a set for each user
-- ARGV: ms for which an ended run is kept, ms for which an open one is, most runs, then for each run: its id, ms since 1970
--   when it was created, its row, 1 when it has ended, and which of the sets is its user's, 0 for none
-- Returns: nil
-- include now
local keep, keep_open, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local DAY, added, has_opened = 86400000, 0, false
local function spell(ms) return string.format('%.0f', ms) end
-- A later generation replaces an earlier one, and an end what was open; what was forgotten stays.
local function stands(earlier, row, has_ended)
  local known, state = string.match(earlier, '^{"g":(%d+),"s":"(%a+)"')
  local own = string.match(row, '^{"g":(%d+)')
  if not known or tonumber(own) > tonumber(known) then return false end
  if tonumber(own) < tonumber(known) then return true end
  return state ~= 'accepted' and (state == 'forgotten' or not has_ended)
end
local function list(id, created, row, has_ended, set)
  local earlier = redis.call('HGET', KEYS[2], id)
  if earlier and stands(earlier, row, has_ended) then return end
  redis.call('HSET', KEYS[2], id, row)
  added = added + redis.call('ZADD', KEYS[1], created, id)
  if has_ended then
    redis.call('ZREM', KEYS[3], id)
  else
    redis.call('ZADD', KEYS[3], created, id)
    has_opened = true
  end
  if not set then return end
  local left = has_ended and keep or keep_open
  redis.call('ZADD', set, spell(now + left), id)
  if redis.call('PTTL', set) < left then redis.call('PEXPIRE', set, spell(left + DAY)) end
end
local function unlist(id)
  redis.call('ZREM', KEYS[1], id)
  -- The row of an open one is found by the list of these.
  if not redis.call('ZSCORE', KEYS[3], id) then redis.call('HDEL', KEYS[2], id) end
end
local function trim(count)
  local over = redis.call('ZCARD', KEYS[1]) - most
  if over > 0 then
    for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, math.min(over, count) - 1)) do unlist(id) end
  end
  for _, id in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', spell(now - keep), 'BYSCORE', 'LIMIT', 0, count)) do
    local ended = string.match(redis.call('HGET', KEYS[2], id) or '"e":0', '"e":(%d+)')
    if ended and tonumber(ended) < now - keep then unlist(id) end
  end
  for place = 4, #KEYS do
    for _, id in ipairs(redis.call('ZRANGE', KEYS[place], '-inf', spell(now), 'BYSCORE', 'LIMIT', 0, 2)) do
      redis.call('ZREM', KEYS[place], id)
    end
  end
end
local function write()
  for at = 4, #ARGV, 5 do
    local set = tonumber(ARGV[at + 4])
    list(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3] == '1', set > 0 and KEYS[3 + set])
  end
  if added == 0 and not has_opened then return end
  trim(2 + 2 * added)
  if has_opened or redis.call('PTTL', KEYS[2]) < keep_open - DAY then
    for place = 1, 3 do redis.call('PEXPIRE', KEYS[place], ARGV[2]) end
  end
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
