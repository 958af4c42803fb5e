-- Functions for every script.
--
--   session_now()      ms since 1970 by the server's clock, a number; session_ms(n) is a number as it is stored.
--   session_call(command, key, ...)  redis.call, but a key that holds another type is removed first.
local function session_now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function session_ms(number)
  return string.format('%.0f', number)
end

local function session_call(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, '^WRONGTYPE ') then redis.call('DEL', key) end
    reply = redis.call(command, key, ...)
  end
  return reply
end
