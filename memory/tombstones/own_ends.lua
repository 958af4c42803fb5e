-- Defines `end_of` and `end_at`: by the commands that a memory worker has, the end of a key in ms since 1970, -1 for none.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function end_of(key)
  local left = redis.call('PTTL', key)
  return left < 0 and -1 or now + left
end
local function end_at(key, at)
  if at < 0 then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, string.format('%.0f', at - now)) end
end
