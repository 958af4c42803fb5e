-- Defines `put_rows(k, keep_ms, first, last)`: appends rows, each once by its id, and returns how many were new.
--
-- KEYS[k] to KEYS[k + 5] are those of the rows. ARGV[first] to ARGV[last] are three of each: id, body, trace or nothing.
local function put_rows(k, keep_ms, first, last)
  local rows, pending, states, numbers = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 5]
  local added, number = 0, math.max(tonumber(redis.call('GET', numbers) or '0'), server_us() - 1)
  for at = first, last, 3 do
    if redis.call('HSETNX', rows, ARGV[at], ARGV[at + 1]) == 1 then
      added, number = added + 1, number + 1
      redis.call('ZADD', pending, string.format('%.0f', number), ARGV[at])
      if ARGV[at + 2] ~= '' then redis.call('HSET', states, 't:' .. ARGV[at], ARGV[at + 2]) end
    end
  end
  if added > 0 then
    redis.call('SET', numbers, string.format('%.0f', number))
    for _, index in ipairs({0, 2, 3}) do redis.call('PERSIST', KEYS[k + index]) end
  end
  trim_rows(k, server_ms(), keep_ms, added + 16)
  return added
end
