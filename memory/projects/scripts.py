"""The Lua of project memories: each script touches one hash tag, that of a project. None of them removes a record.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| APPEND | the nine below, every index it stands in, in-force of its kind first | see below | {word, ...} |
| SEARCH | timeline, records, words, successors, then keys of each condition | see below | {next, record, ...} |
| FOLLOW | records, successors, links | record id, most steps | record, ... |
| REDACT | records, words, marks, vocabulary, by, index of each word | see below | 1: done; 0: it has changed |

The nine are records, words, timeline, state, successors, predecessors, tokens, marks and vocabulary. A record is stored
as `at redacted body` (times in ms, redacted 0 when it is not), and returned as id, that, and the id of what supersedes
it or nil. Its line in `words` is ` :kind #tag word word `: tags percent-escaped, so that a word begins behind a space
and a whole tag ends before one. Each index is a sorted set of ids by their place in the order: the time in 1,024ths of
a millisecond, of which each record has its own.

APPEND takes the letter of the kind, body, token, the id it supersedes, its line of words, and to load a record its id,
time and time of redaction (else empty). It returns {new, id, at_ms}, {known, id} for a repeated token, {exists} for an
id to load that is there, {missing}, {superseded, id} or {younger} for what cannot be superseded. Nothing was written
then: a record comes behind what it supersedes, so that it can be loaded in order.

SEARCH takes the place before which and the one from which it looks, most records, most records looked at in this call,
1 when only those in force are wanted, the id before which it looks or nothing, the number of conditions; of each the
number of texts one of which must stand in the line of words (none: any line does), the number of its keys, those texts.
It walks the condition that the fewest records meet, or the timeline, from the newest on, and stops when it has enough;
*next* is where to go on, empty when there is no more. A condition without keys is met by records of too many indexes.
It returns {unknown} when the id is no record.

REDACT takes the id, its line of words as it was found and as it is to be, body, and each word that goes.

A mark tells by a count and an id what happened last to records of a kind and a tag.
"""

from memory.scripts import register

_SHARED = """
local function number(value) return string.format('%.0f', value) end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function mark(marks, letter, line, id)
  for tag in string.gmatch(line, ' (#[^ ]+)') do
    local field = letter .. tag
    local last = redis.call('HGET', marks, field)
    redis.call('HSET', marks, field, number(tonumber(string.match(last or '0', '^%d+')) + 1) .. ' ' .. id)
  end
end
"""

APPEND = register(
    _SHARED
    + """
local records, words, timeline, state, successors, predecessors, tokens, marks, vocabulary = unpack(KEYS, 1, 9)
local letter, body, token, old, line, id, redacted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[8]
if token ~= '' then
  local known = redis.call('HGET', tokens, token)
  if known then return {'known', known} end
end
if id ~= '' and redis.call('HEXISTS', records, id) == 1 then return {'exists'} end
if old ~= '' then
  if redis.call('HEXISTS', records, old) == 0 then return {'missing'} end
  local by = redis.call('HGET', successors, old)
  if by then return {'superseded', by} end
end

local old_at = old ~= '' and tonumber(string.match(redis.call('HGET', records, old), '^%d+')) or 0
local at
local last = tonumber(redis.call('HGET', state, letter) or '0')
if id == '' then
  at = math.max(now, tonumber(redis.call('HGET', state, 'at') or '0'))
  id = letter .. number(last + 1)
  redis.call('HSET', state, letter, number(last + 1), 'at', number(at))
  at, redacted = math.max(at, old_at), '0'
else
  at = tonumber(ARGV[7])
  if at < old_at then return {'younger'} end
  redis.call('HSET', state, letter, number(math.max(last, tonumber(string.sub(id, 2)))))
end
local place, slot = nil, at
while not place and slot < 2 ^ 43 do
  local low, high = slot * 1024, slot * 1024 + 1023
  local top = redis.call('ZREVRANGEBYSCORE', timeline, number(high), number(low), 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if not top then place = low elseif tonumber(top) < high then place = tonumber(top) + 1 end
  slot = slot + 1
end
place = number(place)

redis.call('HSET', records, id, number(at) .. ' ' .. redacted .. ' ' .. body)
redis.call('HSET', words, id, line)
redis.call('ZADD', timeline, place, id)
for index = 10, #KEYS do redis.call('ZADD', KEYS[index], place, id) end
local ranked = {}
for word in string.gmatch(line, ' ([^:# ][^ ]*)') do
  ranked[#ranked + 1], ranked[#ranked + 2] = 0, word
end
-- Lua unpacks some 8,000 values at most.
for first = 1, #ranked, 2000 do
  redis.call('ZADD', vocabulary, unpack(ranked, first, math.min(first + 1999, #ranked)))
end
mark(marks, letter, line, id)
if token ~= '' then redis.call('HSET', tokens, token, id) end
if old ~= '' then
  redis.call('HSET', successors, old, id)
  redis.call('HSET', predecessors, id, old)
  redis.call('ZREM', KEYS[10], old)
  mark(marks, letter, redis.call('HGET', words, old), id)
end
return {'new', id, number(at)}
""",
    "refuse",
)

SEARCH = register(
    """
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
""",
    "read",
)

FOLLOW = register(
    """
local records, successors, links = KEYS[1], KEYS[2], KEYS[3]
local id, reply = ARGV[1], {}
for step = 1, math.min(tonumber(ARGV[2]), 10000) do
  id = redis.call('HGET', links, id)
  if not id then break end
  reply[3 * step - 2], reply[3 * step - 1] = id, redis.call('HGET', records, id)
  reply[3 * step] = redis.call('HGET', successors, id)
end
return reply
""",
    "read",
)

REDACT = register(
    _SHARED
    + """
local records, words, marks, vocabulary, by = unpack(KEYS, 1, 5)
local id, line = ARGV[1], redis.call('HGET', words, ARGV[1])
if line ~= ARGV[2] then return 0 end
local at = string.match(redis.call('HGET', records, id), '^%d+')
redis.call('HSET', records, id, at .. ' ' .. number(now) .. ' ' .. ARGV[4])
redis.call('HSET', words, id, ARGV[3])
for index = 6, #KEYS do
  redis.call('ZREM', KEYS[index], id)
  if redis.call('EXISTS', KEYS[index]) == 0 then redis.call('ZREM', vocabulary, ARGV[index - 1]) end
end
redis.call('ZREM', by, id)
mark(marks, string.sub(id, 1, 1), line, id)
return 1
""",
    "finish",
)
