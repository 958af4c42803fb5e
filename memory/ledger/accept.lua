-- Notes that a task was assigned.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, assignment, keep_ms, its trace or nothing, ms since 1970 when its first run is due or nothing
-- Returns: nil
-- include read_report
-- Of one that has ended already, it keeps what finish.lua leaves.
if not stored or state == 'failed' then
  if state then
    redis.call('HSETNX', key, 'assignment' .. g, ARGV[2])
  else
    redis.call('HSET', key, 'assignment' .. g, ARGV[2], 'state' .. g, 'accepted')
  end
  if ARGV[4] and ARGV[4] ~= '' then redis.call('HSETNX', key, 'trace' .. g, ARGV[4]) end
end
local keep_ms = tonumber(ARGV[3])
if ARGV[5] then
-- include now
  redis.call('HSETNX', key, 'due_at' .. g, ARGV[5])
  keep_ms = keep_ms + math.max(0, tonumber(ARGV[5]) - now)
end
if not stored then keep(keep_ms) end
return false
