-- Keeps messages of a run behind those of its task; the oldest go where there are too many bytes.
-- KEYS: of entry.lua, messages
-- ARGV: of entry.lua, generation, worker, keep_ms, bytes that a task may keep, messages...
-- Returns: 1: kept; -1: the run was replaced or has ended, or nothing is known of its task
-- The hash has each message by its number, and `first`, `upto`, `bytes`, `dropped`, `dropped_bytes`.
-- include ../ledger/entry
local g, kept = ':' .. ARGV[1], KEYS[2]
local found = redis.call('HMGET', key, 'report' .. g, 'finished_at' .. g, 'worker' .. g, 'leased_until' .. g)
if redis.call('EXISTS', key) == 0 or found[1] or found[2] then return -1 end
-- include ../ledger/now
if found[3] and found[3] ~= ARGV[2] and found[4] and tonumber(found[4]) > now then return -1 end
local state = redis.call('HMGET', kept, 'first', 'upto', 'bytes', 'dropped', 'dropped_bytes')
for at = 1, 5 do state[at] = tonumber(state[at] or '0') end
local first, upto, bytes, dropped, dropped_bytes = state[1], state[2], state[3], state[4], state[5]
local most = tonumber(ARGV[4])
for at = 5, #ARGV do
  redis.call('HSET', kept, upto, ARGV[at])
  upto, bytes = upto + 1, bytes + #ARGV[at]
end
while bytes > most and first < upto - 1 do
  local size = redis.call('HSTRLEN', kept, first)
  redis.call('HDEL', kept, first)
  first, bytes, dropped, dropped_bytes = first + 1, bytes - size, dropped + 1, dropped_bytes + size
end
redis.call('HSET', kept, 'first', first, 'upto', upto, 'bytes', bytes, 'dropped', dropped, 'dropped_bytes', dropped_bytes)
redis.call('PEXPIRE', kept, ARGV[3])
return 1
