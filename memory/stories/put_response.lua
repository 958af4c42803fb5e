-- Stores a response.
-- KEYS: base, responses, written, records
-- ARGV: number, response, its digest, how many to keep, ms for which this one stays whatever else comes
-- Returns: 1: another than before; 0: as it was; -1: there is no story
-- include calls
story_mend(1, 'hash')
story_mend(2, 'hash')
story_mend(3, 'zset')
story_mend(4, 'hash')
local number = ARGV[1]
local told = redis.call('HMGET', KEYS[1], 'revision', 'last')
if not told[1] then return -1 end
local is_other = redis.call('HGET', KEYS[2], ':' .. number) ~= ARGV[3]
if is_other then redis.call('HINCRBY', KEYS[1], 'revision', 1) end
redis.call('HSET', KEYS[2], number, ARGV[2], ':' .. number, ARGV[3])
redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[1], 'writes', 1), number)
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
if tonumber(ARGV[5]) > 0 then redis.call('HSET', KEYS[4], '+' .. number, story_ms(story_now() + tonumber(ARGV[5]))) end
local last = tonumber(told[2])
if not last or last < tonumber(number) then last = tonumber(number) end
local over, at, is_gone = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[4]), 0, false
while over > 0 do
  local oldest = redis.call('ZRANGE', KEYS[3], at, at)[1]
  if not oldest then break end
  if story_held(oldest) then
    at = at + 1
  else
    redis.call('ZREM', KEYS[3], oldest)
    redis.call('HDEL', KEYS[2], oldest, ':' .. oldest)
    is_gone = is_gone or tonumber(oldest) == last
  end
  over = over - 1
end
if is_gone then
  last = -1
  for _, kept in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do last = math.max(last, tonumber(kept)) end
end
redis.call('HSET', KEYS[1], 'last', story_ms(last))
return is_other and 1 or 0
