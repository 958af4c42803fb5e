-- Defines `number` (as it is stored), `now` and `mark`: counts what happened last to records of a kind and a tag.
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
