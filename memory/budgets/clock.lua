-- Defines `now`, ms since 1970: ARGV[1], or the server's clock where that is empty.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
