-- Functions for every script of stories.
--
--   story_mend(at, kind)  removes KEYS[at] when it is of another type than *kind*.
--   story_now()           ms since 1970 by the server's clock.
--   story_keep(order, count, hash...)  keeps the *count* numbers of KEYS[order] that were written last.
--   story_held(number)    whether nothing of the response goes yet, by KEYS[4].
local function story_mend(at, kind)
  local found = redis.call('TYPE', KEYS[at]).ok
  if found ~= 'none' and found ~= kind then redis.call('DEL', KEYS[at]) end
end

local function story_now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function story_ms(number)
  return string.format('%.0f', number)
end

local function story_keep(order, count, ...)
  local over = redis.call('ZCARD', KEYS[order]) - tonumber(count)
  if over <= 0 then return end
  for at, number in ipairs(redis.call('ZPOPMIN', KEYS[order], over)) do
    if at % 2 == 1 then
      for _, hash in ipairs({...}) do redis.call('HDEL', KEYS[hash], number, ':' .. number, '@' .. number) end
    end
  end
end

local function story_held(number)
  local till = redis.call('HGET', KEYS[4], '+' .. number)
  if not till then return false end
  if tonumber(till) > story_now() then return true end
  redis.call('HDEL', KEYS[4], '+' .. number)
  return false
end
