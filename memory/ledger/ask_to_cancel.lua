-- Asks for the cancellation of the task at `key`.
-- ARGV: generation or 0 for the newest, reason, keep_ms
-- Returns: the report, or {6, ...} as report.lua; {generation, state, assignment, what it waits for}
local generation = tonumber(ARGV[1])
if generation == 0 then
-- include newest
  generation = math.max(1, newest)
end
local g = ':' .. string.format('%.0f', generation)
-- include own
local read = redis.call('HMGET', key, 'report' .. g, 'finished_at' .. g, 'state' .. g, 'error' .. g, 'assignment' .. g, 'waits_for' .. g)
-- include report
if stored then return stored end
redis.call('HSETNX', key, 'cancel' .. g, ARGV[2])
if pointer and not (wished and tonumber(wished) >= generation) then point('!' .. string.format('%.0f', generation) .. '!' .. ARGV[2]) end
keep(ARGV[3])
return {generation, read[3] or '', read[5] or '', read[6] or ''}
