-- Defines `held`, `runs`, `queue`, `seen`, `name` and `free`; needs `now`. Places and waiters past their time go first.
-- KEYS: held: tasks by the ms until which each holds a place; runs: by task its worker, token and mark; queue: tasks that
--   wait, by arrival; seen: the same, by the ms when each was last here
local held, runs, queue, seen = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, limit = ARGV[2], tonumber(ARGV[3])
-- Ms after which one that did not look again has lost its turn: each looks every ten minutes at least.
local GONE, KEEP = 900000, 604800000
local function text(number) return string.format('%.0f', number) end
for _, one in ipairs(redis.call('ZRANGEBYSCORE', held, '-inf', text(now))) do
  redis.call('ZREM', held, one)
  redis.call('HDEL', runs, one)
end
for _, one in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', text(now - GONE), 'LIMIT', 0, 100)) do
  redis.call('ZREM', queue, one)
  redis.call('ZREM', seen, one)
end
local function free() return limit - redis.call('ZCARD', held) end
local function forget(one)
  redis.call('ZREM', queue, one)
  redis.call('ZREM', seen, one)
end
local function hold(run)
  forget(name)
  redis.call('ZADD', held, text(now + tonumber(ARGV[4])), name)
  redis.call('HSET', runs, name, run)
  redis.call('PEXPIRE', held, KEEP)
  redis.call('PEXPIRE', runs, KEEP)
end
-- How many go first of those that wait.
local function ahead(arrival)
  return redis.call('ZRANK', queue, name) or redis.call('ZCOUNT', queue, '-inf', '(' .. arrival)
end
-- Ms after which a waiter that is not called looks whether there is a place.
local function look(rank)
  local first = redis.call('ZRANGE', held, 0, 0, 'WITHSCORES')[2]
  local wait = first and tonumber(first) - now or 1000
  return math.ceil(math.min(wait + 50 + 1000 * math.floor(rank / limit), 600000))
end
