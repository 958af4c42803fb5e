-- Removes runs of a user; of those that were cancelled for that a row stays, so that no late end lists them anew.
-- KEYS: the list, rows, open ones, the set of the user
-- ARGV: for each run its id and nothing, or the row that stays
-- Returns: how many of them were listed
-- include now
local count = 0
for at = 1, #ARGV, 2 do
  local id, row = ARGV[at], ARGV[at + 1]
  redis.call('ZREM', KEYS[3], id)
  if row == '' then
    redis.call('ZREM', KEYS[1], id)
    count = count + redis.call('HDEL', KEYS[2], id)
  else
    redis.call('HSET', KEYS[2], id, row)
    redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', now), id)
    count = count + redis.call('ZREM', KEYS[4], id)
  end
  redis.call('ZREM', KEYS[4], id)
end
return count
