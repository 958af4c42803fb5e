-- Reads the newest generation of a task, its first steps and its first children, without long results.
-- KEYS: of entry.lua, and its children in layout 1 where that is read
-- ARGV: of entry.lua, most children, most steps, bytes beyond which a report is without its result and an assignment cut off
-- Returns: {generation, 0 without one; its state, attempts, started_at, cancel, assignment, report, waits_for, worker, leased_until,
--   crashes, lost, now; count of children; their members; count of steps; a head and a size for each; ms of its end and its
--   error, where they are kept apart from the report}
-- include now
-- include entry
-- include pointer
local children, heads, results = pointer and key .. ':children' or KEYS[2], key .. ':steps', key .. ':results'
if redis.call('TYPE', key).ok ~= 'hash' then return {0} end
-- include newest
local g = ':' .. string.format('%.0f', newest)
local found = redis.call('HMGET', key, 'state' .. g, 'attempts' .. g, 'started_at' .. g, 'cancel' .. g,
  'assignment' .. g, 'report' .. g, 'waits_for' .. g, 'worker' .. g, 'leased_until' .. g,
  'crashes' .. g, 'lost' .. g, 'finished_at' .. g, 'error' .. g)
if pointer and found[12] then found[6] = redis.call('GET', key .. ':report' .. g) end
if wished and ':' .. wished == g then found[4] = found[4] or why end
local assignment, report, most = found[5], found[6], tonumber(ARGV[3])
-- A quote inside a text is escaped, so that this begins a member: the last one, as our writers put it.
local cut = report and #report > most and string.find(report, ',"result":', 1, true)
if cut then found[6] = string.sub(report, 1, cut - 1) .. '}' end
if report or found[12] then found[5] = false elseif assignment then found[5] = string.sub(assignment, 1, most) end
local listed = tonumber(ARGV[1]) > 0 and redis.call('ZRANGE', children, 0, tonumber(ARGV[1]) - 1) or {}
local steps, count = {}, redis.call('HLEN', heads)
if count > 0 then
  for position = 0, tonumber(ARGV[2]) - 1 do
    local head = redis.call('HGET', heads, position)
    if head then
      steps[#steps + 1] = head
      steps[#steps + 1] = redis.call('HSTRLEN', results, position)
    end
  end
end
return {newest, found[1], found[2], found[3], found[4], found[5], found[6], found[7], found[8],
  found[9], found[10], found[11], now, redis.call('ZCARD', children), listed, count, steps, found[12], found[13]}
