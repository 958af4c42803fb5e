-- Gives the keys their names. A thing is "KIND ID", and lies in `things` as "STORE OWNER BYTES ASIDE": so many bytes more
-- are set aside in the store of results for what stays at its end.
local THINGS, UNTIL, SUMS = KEYS[1], KEYS[2], KEYS[3]
local RESULTS, STORE_OF_RESULTS = 'results', 'store'
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function whole(number) return string.format('%.0f', number) end
local function sum(field) return tonumber(redis.call('HGET', SUMS, field) or '0') end
-- Counts bytes to a store, to an owner there, and to a kind of theirs.
local function count(store, owner, kind, bytes)
  if bytes == 0 then return end
  for _, field in ipairs({store, store .. ' ' .. owner, store .. ' ' .. owner .. ' ' .. kind}) do
    if tonumber(redis.call('HINCRBY', SUMS, field, whole(bytes))) <= 0 then redis.call('HDEL', SUMS, field) end
  end
end
local function find(thing)
  local store, owner, bytes, aside = string.match(redis.call('HGET', THINGS, thing) or '', '^(%S+) (%S+) (%d+) (%d+)$')
  return store, owner, tonumber(bytes or '0'), tonumber(aside or '0')
end
local function drop(thing)
  local store, owner, bytes, aside = find(thing)
  redis.call('ZREM', UNTIL, thing)
  redis.call('HDEL', THINGS, thing)
  if store then
    count(store, owner, string.match(thing, '^%S+'), -bytes)
    count(STORE_OF_RESULTS, owner, RESULTS, -aside)
  end
  return owner
end
-- Keeps a thing until then, in the place of one of its name.
local function put(thing, store, owner, bytes, aside, ends)
  drop(thing)
  redis.call('HSET', THINGS, thing, store .. ' ' .. owner .. ' ' .. whole(bytes) .. ' ' .. whole(aside))
  redis.call('ZADD', UNTIL, whole(ends), thing)
  count(store, owner, string.match(thing, '^%S+'), bytes)
  count(STORE_OF_RESULTS, owner, RESULTS, aside)
end
-- Returns name and end of what is kept together, as it ends at about the same time: a thirty-second of its time.
local function together(kind, owner, keep)
  local span = math.max(1000, math.floor(keep / 32))
  local part = math.floor((now + keep) / span) + 1
  return kind .. ' ' .. owner .. '.' .. whole(part), part * span
end
