-- Reads the newest generation of a task, its first steps and its first children, without long results.
-- KEYS: task, children, heads, results
-- ARGV: most children, most steps, bytes beyond which a report is without its result and an assignment cut off
-- Returns: {generation, 0 without one; its state, attempts, started_at, cancel, assignment, report, waits_for, worker, leased_until,
--   crashes, lost, now; count of children; their members; count of steps; a head and a size for each}
-- include now
local key, generation = KEYS[1], 0
if redis.call('TYPE', key).ok ~= 'hash' then return {0} end
for _, field in ipairs(redis.call('HKEYS', key)) do
  local number = tonumber(string.match(field, '^[a-z_]+:(%d+)$') or '0')
  if number > generation then generation = number end
end
local g = ':' .. string.format('%.0f', generation)
local found = redis.call('HMGET', key, 'state' .. g, 'attempts' .. g, 'started_at' .. g, 'cancel' .. g,
  'assignment' .. g, 'report' .. g, 'waits_for' .. g, 'worker' .. g, 'leased_until' .. g,
  'crashes' .. g, 'lost' .. g)
local assignment, report, most = found[5], found[6], tonumber(ARGV[3])
-- A quote inside a text is escaped, so that this begins a member: the last one, as our writers put it.
local cut = report and #report > most and string.find(report, ',"result":', 1, true)
if cut then found[6] = string.sub(report, 1, cut - 1) .. '}' end
if report then found[5] = false elseif assignment then found[5] = string.sub(assignment, 1, most) end
local listed = tonumber(ARGV[1]) > 0 and redis.call('ZRANGE', KEYS[2], 0, tonumber(ARGV[1]) - 1) or {}
local steps, count = {}, redis.call('HLEN', KEYS[3])
if count > 0 then
  for position = 0, tonumber(ARGV[2]) - 1 do
    local head = redis.call('HGET', KEYS[3], position)
    if head then
      steps[#steps + 1] = head
      steps[#steps + 1] = redis.call('HSTRLEN', KEYS[4], position)
    end
  end
end
return {generation, found[1], found[2], found[3], found[4], found[5], found[6], found[7], found[8],
  found[9], found[10], found[11], now, redis.call('ZCARD', KEYS[2]), listed, count, steps}
