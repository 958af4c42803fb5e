-- Stores an entry and where it stands among its neighbours; lets go of places whose entries have expired.
-- KEYS: entry, hits, near, until, near:2, ...
-- ARGV: value, lifetime_ms or nothing, place, now_ms, most
-- No lifetime means for ever; at most *most* expired places go.
-- Returns: nil
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
