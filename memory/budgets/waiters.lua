-- Defines what is done with those that wait; needs `checks`. Workers write their rows: what cannot be one is dropped.
local MOST_BYTES = 65536
-- Returns whether `key` holds something of type `kind`; what is of another type is removed.
local function holds(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then redis.call('UNLINK', key) end
  return found == kind
end
-- Returns the row of a waiter: `needs`, `at` and `again`, see wake; false for one that is none, nil without a row.
local function read_waiter(waiters, waiter)
  if redis.call('HSTRLEN', waiters, waiter) > MOST_BYTES then return false end
  local stored = redis.call('HGET', waiters, waiter)
  if not stored then return nil end
  local is_read, row = pcall(cjson.decode, stored)
  if not is_read or type(row) ~= 'table' or type(row.needs) ~= 'table' or not is_number(row.at) then return false end
  local needs = {}
  for i, need in ipairs(row.needs) do
    if type(need) ~= 'table' or not is_account(need[1]) or not is_number(need[2]) then return false end
    needs[i] = {need[1], need[2]}
  end
  return {needs = needs, at = row.at, again = is_number(row.again) and row.again or nil}
end
local function write_waiter(waiters, waiter, row) redis.call('HSET', waiters, waiter, cjson.encode(row)) end
-- A waiter waits no more.
local function forget(waiter, waiters, looks, freed)
  local row = read_waiter(waiters, waiter)
  -- A queue of another type is one that nobody waits in.
  for _, need in ipairs(row and row.needs or {}) do redis.pcall('ZREM', need[1] .. ':queue', waiter) end
  redis.call('HDEL', waiters, waiter)
  redis.call('ZREM', looks, waiter)
  redis.call('ZREM', freed, waiter)
end
