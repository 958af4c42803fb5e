-- Defines `key`, `g`, and of the generation ARGV[1] `stored` (its report), `wish` (the reason of its cancellation) and
-- `state`.
-- A key that holds another type is not ours: it is replaced rather than fail every delivery of that task.
local key, g = KEYS[1], ':' .. ARGV[1]
local read = redis.pcall('HMGET', key, 'report' .. g, 'cancel' .. g, 'state' .. g)
if read.err then
  if not string.find(read.err, '^WRONGTYPE ') then return read end
  redis.call('DEL', key)
  read = {false, false, false}
end
local stored, wish, state = read[1], read[2], read[3]
