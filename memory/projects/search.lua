-- Searches records, newest first.
-- KEYS: timeline, records, words, successors, then keys of each condition
-- ARGV: place before which and place from which it looks, most records, most records looked at in this call, 1 for only
--   those in force, id before which it looks or nothing, number of conditions; of each the number of texts one of which
--   must stand in the line of words (none: any line does), the number of its keys, those texts
-- Returns: {next, id, record, id of what supersedes it or nil, ...}: *next* is where to go on, empty when there is no more;
--   {unknown} when the id is no record
-- It walks the condition that the fewest records meet, or the timeline, from the newest on, and stops when it has enough.
-- A condition without keys is met by records of too many indexes.
local timeline, records, words, successors = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local top, bottom, limit, budget, in_force = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
if ARGV[6] ~= '' then
  local place = redis.call('ZSCORE', timeline, ARGV[6])
  if not place then return {'unknown'} end
  top = math.min(top, tonumber(place))
end
local function within(count, most) return math.max(0, math.min(tonumber(count), most)) end
local function below() return '(' .. string.format('%.0f', top) end

local conditions, at, key = {}, 8, 5
for number = 1, tonumber(ARGV[7]) do
  local condition = {texts = {}, keys = {}}
  -- What a caller tells may be anything: no loop goes on behind what there is.
  local texts, indexes = within(ARGV[at], #ARGV), within(ARGV[at + 1], #KEYS)
  for index = 1, texts do condition.texts[index] = ARGV[at + 1 + index] end
  for index = 1, indexes do condition.keys[index] = KEYS[key + index - 1] end
  at, key = at + 2 + texts, key + indexes
  conditions[number] = condition
end

local function count(indexes)
  local counts, total = {}, 0
  for place, index in ipairs(indexes) do
    counts[place] = redis.call('ZCOUNT', index, bottom, below())
    total = total + counts[place]
  end
  return total, counts
end
local walked, fewest = {keys = {timeline}}, redis.call('ZCOUNT', timeline, bottom, below())
for _, condition in ipairs(conditions) do
  condition.total = #condition.keys > 0 and count(condition.keys) or math.huge
  if condition.total < fewest then walked, fewest = condition, condition.total end
end
-- What few records meet is looked at first: most lines are done with then.
table.sort(conditions, function(one, other) return one.total < other.total end)

local function page(size)
  local indexes = walked.keys
  if #indexes == 1 then
    local found = redis.call('ZREVRANGEBYSCORE', indexes[1], below(), bottom, 'WITHSCORES', 'LIMIT', 0, size)
    local ids = {}
    for place = 1, #found, 2 do ids[#ids + 1] = found[place] end
    return ids, #ids == size and tonumber(found[#found]) or nil
  end
  -- Of each index its share, so that they all reach back about as far; below the one that reaches least far, nothing
  -- is known yet.
  local total, counts = count(indexes)
  local places, by_place, floor = {}, {}, nil
  for number, index in ipairs(indexes) do
    if counts[number] > 0 then
      local share = math.max(4, math.ceil(size * counts[number] / total))
      local found = redis.call('ZREVRANGEBYSCORE', index, below(), bottom, 'WITHSCORES', 'LIMIT', 0, share)
      for place = 1, #found, 2 do
        local score = tonumber(found[place + 1])
        if not by_place[score] then places[#places + 1], by_place[score] = score, found[place] end
      end
      if counts[number] > share then floor = math.max(floor or 0, tonumber(found[#found])) end
    end
  end
  table.sort(places, function(one, other) return one > other end)
  local ids = {}
  for _, place in ipairs(places) do
    if floor and place < floor then break end
    ids[#ids + 1] = by_place[place]
  end
  return ids, floor
end

local function fits(line)
  for _, condition in ipairs(conditions) do
    if condition ~= walked then
      local is_met = #condition.texts == 0
      for _, text in ipairs(condition.texts) do
        if string.find(line, text, 1, true) then
          is_met = true
          break
        end
      end
      if not is_met then return false end
    end
  end
  return true
end

local found, looked_at, size, more = {}, 0, math.min(budget, math.max(64, limit)), nil
repeat
  local ids
  ids, more = page(size)
  if #ids > 0 then
    local lines = redis.call('HMGET', words, unpack(ids))
    for place, id in ipairs(ids) do
      if fits(lines[place]) and not (in_force == '1' and redis.call('HEXISTS', successors, id) == 1) then
        found[#found + 1] = id
        if #found == limit then
          more = redis.call('ZSCORE', timeline, id)
          break
        end
      end
    end
  end
  looked_at, size, top = looked_at + #ids, math.min(1000, 4 * size), more or top
until #found == limit or not more or looked_at >= budget

local reply = {more and string.format('%.0f', more) or ''}
if #found > 0 then
  local stored, later = redis.call('HMGET', records, unpack(found)), redis.call('HMGET', successors, unpack(found))
  for place, id in ipairs(found) do
    reply[3 * place - 1], reply[3 * place], reply[3 * place + 1] = id, stored[place], later[place]
  end
end
return reply
