-- Stores other limits, unless somebody changed them meanwhile; who waits for room under the old ones waits anew.
-- KEYS: limits, their history, accounts
-- ARGV: the version that was read, "" for whatever stands there; limits as JSON, who, when, how many versions stay
-- Returns: the new version, or -1
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if ARGV[1] ~= '' and ARGV[1] ~= version then return -1 end
-- A limit of other units than before begins anew.
local function units(limits)
  local found = {}
  for _, one in ipairs(limits and cjson.decode(limits).limits or {}) do
    for _, unit in ipairs({'requests', 'tokens', 'usd', 'at_once'}) do
      if one[unit] ~= cjson.null then found[one.name] = unit .. tostring(one.every) end
    end
  end
  return found
end
local before, new = units(redis.call('HGET', KEYS[1], 'limits')), tonumber(version) + 1
redis.call('HSET', KEYS[1], 'version', new, 'limits', ARGV[2], 'who', ARGV[3], 'when', ARGV[4])
redis.call('LPUSH', KEYS[2], cjson.encode({version = new, who = ARGV[3], when = ARGV[4], limits = ARGV[2]}))
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[5]) - 1)
local now_of = units(ARGV[2])
for _, account in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
  redis.call('UNLINK', account .. ':queue')
  local name = string.match(account, ':account:([^;]+)')
  if name and before[name] ~= now_of[name] then
    redis.call('UNLINK', account)
    redis.call('ZREM', KEYS[3], account)
  end
end
return new
