-- Defines `key`, `g`, and of the generation ARGV[1] `stored` (as report.lua), `wish` (the reason of its cancellation) and
-- `state`.
-- A key that holds another type is not ours: it is replaced rather than fail every delivery of that task.
-- include entry
local g, generation = ':' .. ARGV[1], tonumber(ARGV[1])
local read = redis.pcall('HMGET', key, 'report' .. g, 'finished_at' .. g, 'state' .. g, 'error' .. g, 'cancel' .. g)
if read.err then
  if not string.find(read.err, '^WRONGTYPE ') then return read end
  redis.call('DEL', key)
  read = {false, false, false, false, false}
end
-- include own
-- include report
local wish, state = read[5] or wished == ARGV[1] and why, read[3]
