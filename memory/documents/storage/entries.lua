-- Reads the log entries that led to revisions.
-- KEYS: document and log of each
-- ARGV: revision of each
-- Returns: the log entry that led to that revision, or nil, each
local found = {}
for at = 1, #ARGV do
  local last = tonumber(redis.call('HGET', KEYS[2 * at - 1], 'revision') or '0')
  local back = tonumber(ARGV[at]) - last - 1
  found[at] = back < 0 and redis.call('LINDEX', KEYS[2 * at], back)
end
return found
