-- Reads entries and counts their use.
-- KEYS: root, entries, hits, uses, corrected
-- ARGV: `count`, `once` or `peek`, reader, keys
-- Returns: {{key, head, hits, body} or nil, ...}; the key is of the phase that replaced the one asked for
-- include calls
-- include living_entries
local hits, uses, corrected = KEYS[3], KEYS[4], KEYS[5]
if not session_call('HGET', KEYS[1], 'session_id') then return {} end
local now, mode, reader = session_now(), ARGV[1], ARGV[2]

local function as_shown(key)
  local phase, rest = string.match(key, '^([^:]+)(:.*)$')
  local by = phase and session_call('HGET', corrected, phase)
  if not by then return key end
  local steps = 0
  while by and steps < 1000 do
    phase, steps = by, steps + 1
    by = redis.call('HGET', corrected, phase)
  end
  return phase .. rest
end

local function last_as_long_as_the_root(key)
  local left = redis.call('PTTL', KEYS[1])
  if left > 0 then redis.call('PEXPIRE', key, left) end
end

local function count_use(key, head)
  if mode == 'once' then
    local number = string.match(head, '^%d+:%d+:(%d+):') or '0'
    if session_call('SADD', uses, number .. ':' .. reader) == 0 then return redis.call('HGET', hits, key) end
    if redis.call('SCARD', uses) == 1 then last_as_long_as_the_root(uses) end
  end
  local count = session_call('HINCRBY', hits, key, 1)
  if count == 1 then last_as_long_as_the_root(hits) end
  return count
end

local function look(key)
  key = as_shown(key)
  local found = session_call('HMGET', KEYS[2], ':' .. key, key)
  if not found[2] or not is_living(found[1], now) then return false end
  local count
  if mode == 'peek' then count = session_call('HGET', hits, key) else count = count_use(key, found[1]) end
  return {key, found[1], count or 0, found[2]}
end

local found = {}
for at = 3, #ARGV do found[at - 2] = look(ARGV[at]) end
return found
