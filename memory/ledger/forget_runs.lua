-- Removes runs of a user; of one that is open, or was cancelled for that, a row without a word of them stays, so that no late
--   end lists it anew.
-- KEYS: the list, rows, open ones, the set of the user
-- ARGV: for each run its id and nothing, or the row that stays
-- Returns: how many of them there were
-- include now
local OPEN, FORGOTTEN = '^{"g":(%d+),"s":"accepted","t":"([%w_-]+)","c":(%d+)', '^{"g":%d+,"s":"forgotten"'
local count = 0
for at = 1, #ARGV, 2 do
  local id, row = ARGV[at], ARGV[at + 1]
  local known = redis.call('HGET', KEYS[2], id) or ''
  local is_forgotten = string.match(known, FORGOTTEN)
  local generation, task, created = string.match(known, OPEN)
  if row == '' and generation then
    row = string.format('{"g":%s,"s":"forgotten","t":"%s","c":%s,"e":%.0f,"x":"UserForgotten"}', generation, task, created, now)
  end
  if row ~= '' then
    redis.call('HSET', KEYS[2], id, row)
    redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', now), id)
  elseif not is_forgotten then
    redis.call('ZREM', KEYS[1], id)
    redis.call('HDEL', KEYS[2], id)
  end
  redis.call('ZREM', KEYS[3], id)
  local was_theirs = redis.call('ZREM', KEYS[4], id) == 1
  if was_theirs or (known ~= '' and not is_forgotten) then count = count + 1 end
end
return count
