-- Stores the report of a generation, once; a cancellation that was asked for goes before another report.
-- KEYS: of entry.lua, ended
-- ARGV: of entry.lua, generation, status, report, keep_ms, report_ms, user or nothing, 1 to replace a report that is there
-- Returns: nil: it counts; the earlier report, or {6, ...} as report.lua; {reason}: it is to be cancelled
-- include read_report
if stored then
  if stored == ARGV[3] then return false end
  redis.call('HINCRBY', key, 'refused' .. g, 1)
  if ARGV[7] ~= '1' then return stored end
  redis.pcall('HINCRBY', KEYS[2], state or '', -1)
end
if wish and ARGV[2] ~= 'cancelled' and ARGV[7] ~= '1' then return {wish} end
local counted = redis.pcall('HINCRBY', KEYS[2], ARGV[2], 1)
if type(counted) == 'table' then
  if not string.find(counted.err, '^WRONGTYPE ') then return counted end
  redis.call('DEL', KEYS[2])
  redis.call('HINCRBY', KEYS[2], ARGV[2], 1)
end
-- What only a run needs goes first: a hash that is empty then is made anew, without the room that its fields took.
-- Its state came with the first of them, and as long as it is accepted there are no others: deletes cost more than the
-- rest of this script.
local kept = ARGV[2] == 'failed'
if state == 'accepted' then
  redis.call('HDEL', key, 'state' .. g, 'due_at' .. g, 'waits_for' .. g)
elseif state then
  redis.call('HDEL', key, 'state' .. g, 'report' .. g, 'worker' .. g, 'started_at' .. g, 'leased_until' .. g,
    'due_at' .. g, 'attempts' .. g, 'alone' .. g, 'token' .. g, 'crashes_alone' .. g, 'excused' .. g,
    'furthest' .. g, 'waits_for' .. g, 'finished_at' .. g, 'error' .. g)
end
if state and not kept then redis.call('HDEL', key, 'assignment' .. g, 'trace' .. g) end
if pointer then
-- include rest
elseif ARGV[6] and ARGV[6] ~= '' then
  redis.call('HSET', key, 'state' .. g, ARGV[2], 'report' .. g, ARGV[3], 'user', ARGV[6])
else
  redis.call('HSET', key, 'state' .. g, ARGV[2], 'report' .. g, ARGV[3])
end
keep(ARGV[4])
-- It was kept for longer while it waited; a later generation may still.
if redis.call('HEXISTS', key, 'state:' .. string.format('%.0f', generation + 1)) == 0 then
  redis.call('PEXPIRE', key, ARGV[4])
  if pointer then redis.call('PEXPIRE', pointer, ARGV[2] == 'cancelled' and ARGV[4] or redis.call('PTTL', key .. ':report' .. g)) end
end
return false
