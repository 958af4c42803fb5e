-- Defines `add`, `put` and `bound` for a script that adds messages; `finish(result)` is its end. ARGV: keep, keep_ms.
-- include mend
-- include fold
local keep, keep_ms = tonumber(ARGV[1]), ARGV[2]

local function put(id, body)
  total, left = total + 1, left + 1
  redis.call('ZADD', IDS, whole(total), id)
  redis.call('RPUSH', SAID, body)
end

local function add(id, body)
  if redis.call('ZSCORE', IDS, id) then return 0 end
  put(id, body)
  return 1
end

local function bound()
  if left > keep then
    fold(total - keep)
    redis.call('LTRIM', SAID, -keep, -1)
    left = keep
  end
  redis.call('ZREMRANGEBYSCORE', IDS, '-inf', whole(total - keep))
end

local function finish(result)
  bound()
  redis.call('HSET', STATE, 'total', whole(total))
  for at = 1, 5 do redis.call('PEXPIRE', KEYS[at], keep_ms) end
  return result
end
