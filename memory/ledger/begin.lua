-- Begins a run of a task, unless it has a report, is to be cancelled, is not due or runs elsewhere.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, worker, now_ms, keep_ms, lease_ms, before, 1: alone, token, most crashes
-- Returns: the report, or {6, ...} as report.lua; {1, run, crashes, excused, 1 when the last crash is news, what it waited for, 1 when it was
--   not known before}: it may run; {2, ms}: it runs elsewhere; {5, ms}: it is not due; {3, reason}: it is to be
--   cancelled; {4, crashes, crashes alone, runs, 1 when that is news, the worker of the last crash and when its lease
--   ended, in ms}:
--   more runs crashed than the caller tolerates, who may ask again with more of them tolerated, or alone
-- include read_report
if stored then return stored end
if wish then return {3, wish} end
-- include now
-- A task of which nobody has told has none of these.
local last = state and redis.call('HMGET', key, 'worker' .. g, 'leased_until' .. g, 'due_at' .. g,
  'attempts' .. g, 'crashes' .. g, 'crashes_alone' .. g, 'alone' .. g, 'excused' .. g, 'token' .. g, 'waits_for' .. g,
  'lost' .. g) or {}
if last[3] and tonumber(last[3]) > now then return {5, tonumber(last[3]) - now} end
local excused = tonumber(last[8] or '0')
local crashes, alone, fresh = tonumber(last[5] or '0'), tonumber(last[6] or '0'), 0
if last[2] then
  local left = tonumber(last[2]) - now
  if left > 0 and last[1] ~= ARGV[2] then return {2, left} end
  if left > 0 and last[9] == ARGV[8] then return {1, tonumber(last[4]), crashes, excused, 0, last[10] or '', 0} end
  if left <= 0 then
    crashes, fresh = crashes + 1, 1
    if last[7] == '1' then alone = alone + 1 end
    last[11] = (last[1] or '') .. ' ' .. last[2]
    redis.call('HSET', key, 'crashes' .. g, crashes, 'crashes_alone' .. g, alone, 'lost' .. g, last[11])
    redis.call('HDEL', key, 'leased_until' .. g)
  end
end
if crashes > tonumber(ARGV[9]) and ARGV[7] ~= '1' then return {4, crashes, alone, tonumber(last[4] or '0'), fresh, last[11] or ''} end
local run = math.max(tonumber(last[4] or '0'), tonumber(ARGV[6])) + 1
redis.call('HSET', key,
  'state' .. g, 'running',
  'worker' .. g, ARGV[2],
  'started_at' .. g, ARGV[3],
  'leased_until' .. g, string.format('%.0f', now + tonumber(ARGV[5])),
  'attempts' .. g, run,
  'alone' .. g, ARGV[7],
  'token' .. g, ARGV[8])
keep(ARGV[4])
return {1, run, crashes, excused, fresh, last[10] or '', state and 0 or 1}
