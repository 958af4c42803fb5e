-- Defines `left` and `total`, and removes keys of another type. Ids of what waited in one of those wait no longer.
local SAID, IDS, INBOX, STATE, DIGEST = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local function whole(number) return string.format('%.0f', number) end

for at, meant in ipairs({'list', 'zset', 'list', 'hash', 'hash'}) do
  local kind = redis.call('TYPE', KEYS[at]).ok
  if kind ~= 'none' and kind ~= meant then
    redis.call('DEL', KEYS[at])
    if at == 3 then redis.call('ZREMRANGEBYSCORE', IDS, 'inf', 'inf') end
  end
end

local left = redis.call('LLEN', SAID)
local newest = redis.call('ZREVRANGEBYSCORE', IDS, '(inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
local total = math.max(tonumber(redis.call('HGET', STATE, 'total') or '0'), tonumber(newest or '0'), left)
