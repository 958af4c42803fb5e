-- Leaves what a task of layout 2 keeps at rest, its fence, and its report beside it for report_ms.
-- include now
local fence = {'state' .. g, ARGV[2], 'finished_at' .. g, string.format('%.0f', now)}
-- include error_of
local failure = ARGV[2] ~= 'completed' and error_of(ARGV[3])
if failure then
  table.insert(fence, 'error' .. g)
  table.insert(fence, failure)
end
if ARGV[6] and ARGV[6] ~= '' then
  table.insert(fence, 'user')
  table.insert(fence, ARGV[6])
end
-- A hash that once held an assignment keeps the room of a large one.
local left = state and redis.call('HGETALL', key) or {}
if #left > 0 and #left < 200 then
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(left))
end
redis.call('HSET', key, unpack(fence))
-- One that replaces another is kept no shorter than that: who adopts it may not know that it is a child's.
local report_ms = math.max(tonumber(ARGV[5]), redis.call('PTTL', key .. ':report' .. g))
redis.call('SET', key .. ':report' .. g, ARGV[3], 'PX', string.format('%.0f', report_ms))
-- Its children end with it, though they cannot reach its entry.
if ARGV[2] == 'cancelled' and not wished and redis.call('HEXISTS', key, 'state:' .. string.format('%.0f', generation + 1)) == 0 then
  point('!' .. ARGV[1] .. '!it was cancelled')
end
