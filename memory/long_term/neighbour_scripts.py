"""The Lua of near matches: each script touches one hash tag.

| script | KEYS | ARGV | returns |
|---|---|---|---|
| REMEMBER | entry, hits, near, until, near:2, ... | value, lifetime_ms or nothing, place, now_ms, most | nil |
| AROUND | near, near:2, ... | most, enough, returned, of each field score, low, high, reach | places, nearest first |
| NEAREST | near, until, near:2, ..., entry, ... | place, ... | number and value of the first that is there, or nil |
| FORGET | entry, hits | how the keys of its neighbours begin | 1: removed; 0: it was not there |

REMEMBER stores an entry and where it stands among its neighbours in one step, and lets go of places whose entries have
expired, *most* at once. No lifetime means for ever. NEAREST lets go of places whose entries are gone. FORGET finds the
place in the end of the entry itself, where `long_term.entries.encode` puts it: an entry without one has no neighbours.

AROUND finds the nearest in several fields at once. It walks away from the asked value along every field, both ways.
What it has not met yet is farther away in every field than it has walked there, so what is nearer than all of these
together is nearest; and where one field's tolerance ends, nothing is left. It stops after *enough* of those, or once it
has looked at *most*, after which one that it has not met may be nearer. At most *returned* places that floats cannot
tell apart come back.
"""

from memory.scripts import register

#: Places of expired entries that storing one entry removes: in the long run more than expire meanwhile.
MOST_EXPIRED = 50

REMEMBER = register(
    """
local entry, hits, till = KEYS[1], KEYS[2], KEYS[4]
local lifetime, place, now = ARGV[2], ARGV[3], tonumber(ARGV[4])
local by_value = {KEYS[3]}
for number = 5, #KEYS do by_value[#by_value + 1] = KEYS[number] end
local expired = redis.call('ZRANGEBYSCORE', till, '-inf', '(' .. ARGV[4], 'LIMIT', 0, ARGV[5])
for _, gone in ipairs(expired) do
  for _, near in ipairs(by_value) do redis.call('ZREM', near, gone) end
  redis.call('ZREM', till, gone)
end
local field = 0
for value in string.gmatch(place, '[^|]+') do
  field = field + 1
  redis.call('ZADD', by_value[field], value, place)
end
if lifetime == '' then
  redis.call('SET', entry, ARGV[1])
  redis.call('PERSIST', hits)
  redis.call('ZADD', till, '+inf', place)
else
  redis.call('SET', entry, ARGV[1], 'PX', lifetime)
  redis.call('PEXPIRE', hits, lifetime)
  redis.call('ZADD', till, string.format('%.0f', now + tonumber(lifetime)), place)
end
local last = redis.call('ZRANGE', till, -1, -1, 'WITHSCORES')[2]
for number = 3, #KEYS do
  if last == 'inf' then
    redis.call('PERSIST', KEYS[number])
  else
    redis.call('PEXPIRE', KEYS[number], string.format('%.0f', math.max(1, tonumber(last) - now)))
  end
end
return false
""",
    "refuse",
)

AROUND = register(
    """
local most, enough, returned = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local fields, sides, walked = {}, {}, {}
for number = 1, #KEYS do
  local at = 4 * number
  local score, low, high, reach = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  fields[number] = {score = tonumber(score), low = tonumber(low), high = tonumber(high), reach = reach}
  walked[number] = {0, 0}
  sides[#sides + 1] = {field = number, side = 1, call = 'ZRANGEBYSCORE', from = score, to = high, skip = 0}
  sides[#sides + 1] = {field = number, side = 2, call = 'ZREVRANGEBYSCORE', from = '(' .. score, to = low, skip = 0}
end

local function share(field, value)
  local away = math.abs(value - field.score)
  if away == 0 then return 0 end
  return field.reach > 0 and away / field.reach or math.huge
end

local seen, found, looked = {}, {}, 0
local parts = '^([^|]+)' .. string.rep('|([^|]+)', #KEYS - 1) .. '$'

local function meet(place)
  looked = looked + 1
  if seen[place] then return end
  seen[place] = true
  local used, values = 0, {string.match(place, parts)}
  for number, field in ipairs(fields) do
    local value = tonumber(values[number])
    if not (value and value >= field.low and value <= field.high) then return end
    values[number] = value
    used = used + share(field, value)
  end
  found[#found + 1] = {place = place, used = used, values = values}
end

local function walk(one, page)
  local met = redis.call(one.call, KEYS[one.field], one.from, one.to, 'LIMIT', one.skip, page)
  for _, place in ipairs(met) do meet(place) end
  one.skip = one.skip + page
  one.done = #met < page
  if one.done then
    walked[one.field][one.side] = math.huge
    return
  end
  local field, score = fields[one.field], redis.call('ZSCORE', KEYS[one.field], met[page])
  walked[one.field][one.side] = share(field, tonumber(score))
end

local page = 8
while looked < most and #sides > 0 do
  local unseen = 0
  for _, one in ipairs(sides) do
    if not one.done then walk(one, page) end
  end
  for _, both in ipairs(walked) do
    unseen = unseen + math.min(both[1], both[2])
  end
  if unseen == math.huge then break end
  local sure = 0
  for _, one in ipairs(found) do
    if one.used < unseen then sure = sure + 1 end
  end
  if sure >= enough then break end
  page = math.min(page * 2, math.ceil((most - looked) / #sides))
end

table.sort(found, function(one, other)
  if one.used ~= other.used then return one.used < other.used end
  for number, value in ipairs(one.values) do
    if value ~= other.values[number] then return value < other.values[number] end
  end
  return one.place < other.place
end)
local places = {}
for number, one in ipairs(found) do
  -- What floats cannot tell apart from the last one is told apart where they are exact.
  if number > enough and (number > returned or one.used > found[enough].used + 1e-9) then break end
  places[number] = one.place
end
return places
""",
    "read",
)

NEAREST = register(
    """
local indexes = #KEYS - #ARGV
for number = 1, #ARGV do
  local value = redis.call('GET', KEYS[indexes + number])
  if value then return {number, value} end
  for index = 1, indexes do redis.call('ZREM', KEYS[index], ARGV[number]) end
end
return false
""",
    "finish",
)

FORGET = register(
    """
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' and not string.find(value.err, '^WRONGTYPE ') then return value end
if type(value) == 'string' then
  local frame, place = string.match(string.sub(value, -4096), '"near":{"frame":"(%w+)","place":"([%d.|E+-]+)"}}$')
  if frame then
    local near, fields = ARGV[1] .. frame, select(2, string.gsub(place, '|', '')) + 1
    redis.call('ZREM', near, place)
    redis.call('ZREM', near .. ':until', place)
    for number = 2, fields do redis.call('ZREM', near .. ':' .. number, place) end
  end
end
redis.call('UNLINK', KEYS[2])
return redis.call('UNLINK', KEYS[1])
""",
    "finish",
)
