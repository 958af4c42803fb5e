-- Finds the places nearest to given values in several fields at once.
-- It walks away from the asked value along every field, both ways. What it has not met yet is farther away in every field
-- than it has walked there, so what is nearer than all of these together is nearest; and where one field's tolerance ends,
-- nothing is left. It stops after *enough* of those, or once it has looked at *most*, after which one that it has not met
-- may be nearer. At most *returned* places that floats cannot tell apart come back.
-- KEYS: near, near:2, ...
-- ARGV: most, enough, returned, of each field score, low, high, reach
-- Returns: places, nearest first
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
