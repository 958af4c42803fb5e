-- Loads entries of a session that is not made yet.
-- KEYS: the first eight of `memory.keys.SessionKeys`
-- ARGV: token, 1 to begin, ms to keep them, then key, body, head and hits of each
-- Returns: 1: done; 0: taken
-- include open_session
if known then return 0 end
if ARGV[2] == '1' then
  redis.call('UNLINK', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[3], ':loading', ARGV[1])
elseif redis.call('HGET', KEYS[3], ':loading') ~= ARGV[1] then
  return 0
end
for at = 4, #ARGV, 4 do
  redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1], ':' .. ARGV[at], ARGV[at + 2])
  if ARGV[at + 3] ~= '0' then redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 3]) end
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1
