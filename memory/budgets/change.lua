-- Stores other limits, unless somebody changed them meanwhile; `wake` then moves those that wait, and wakes them.
-- KEYS: limits, their history, accounts; lined, moves: see wake
-- ARGV: now_ms or nothing, the version that was read, "" for whatever stands there; limits as JSON, who, when, how many
--   versions stay
-- Returns: the new version, or -1
-- include clock
-- include checks
-- include waiters
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if ARGV[2] ~= '' and ARGV[2] ~= version then return -1 end
-- A limit of other units than before begins anew; one that covers others too is another one to those that wait.
local function read(limits)
  local found = {}
  for _, one in ipairs(limits and cjson.decode(limits).limits or {}) do
    for _, unit in ipairs({'requests', 'tokens', 'usd', 'at_once'}) do
      if one[unit] and one[unit] ~= cjson.null then
        local units = unit .. tostring(one.every)
        local covers = {}
        for i, name in ipairs({'model', 'tenant', 'user', 'agent', 'task'}) do covers[i] = one[name] or '' end
        found[one.name] = {units = units, amount = tonumber(one[unit]) * (unit == 'usd' and 1e9 or 1), every = one.every,
          covers = units .. cjson.encode(covers)}
      end
    end
  end
  return found
end
local before, new = read(redis.call('HGET', KEYS[1], 'limits')), tonumber(version) + 1
redis.call('HSET', KEYS[1], 'version', new, 'limits', ARGV[3], 'who', ARGV[4], 'when', ARGV[5])
redis.call('LPUSH', KEYS[2], cjson.encode({version = new, who = ARGV[4], when = ARGV[5], limits = ARGV[3]}))
redis.call('LTRIM', KEYS[2], 0, tonumber(ARGV[6]) - 1)
local after = read(ARGV[3])
-- What is to be moved adds up with what nobody has begun to move: {} of a limit that is another one now, else the amount
-- of a rate as it `was`, and as it `is`.
local stored = redis.call('HGET', KEYS[5], 'next')
local moves, is_changed = stored and cjson.decode(stored).limits or {}, {}
for name in pairs(after) do is_changed[name] = not before[name] end
for name, old in pairs(before) do
  local limit = after[name]
  is_changed[name] = not limit or limit.covers ~= old.covers or limit.amount ~= old.amount
  if not limit or limit.covers ~= old.covers then
    moves[name] = {}
  elseif limit.every == 'minute' and limit.amount ~= old.amount then
    local earlier = moves[name]
    moves[name] = {was = earlier and earlier.was or not earlier and old.amount or nil, is = limit.amount}
  end
end
if next(moves) then redis.call('HSET', KEYS[5], 'next', cjson.encode({at = now, limits = moves})) end
holds(KEYS[4], 'zset')
for _, account in ipairs(redis.call('ZRANGE', KEYS[3], 0, 9999)) do
  local name = is_account(account) and string.match(account, ':account:([^;]+)')
  if not name then
    redis.call('ZREM', KEYS[3], account)
  elseif is_changed[name] then
    -- In a queue that is not listed wait no tasks: whoever is there waits anew.
    if not redis.call('ZSCORE', KEYS[4], account) then redis.call('UNLINK', account .. ':queue') end
    if (before[name] or {}).units ~= (after[name] or {}).units then
      redis.call('UNLINK', account)
      redis.call('ZREM', KEYS[3], account)
    end
  end
end
return new
