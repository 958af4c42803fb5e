-- Renews the lease of an analysis.
-- KEYS: index
-- ARGV: member, ms from now
-- Returns: 1: done; 0: not listed
-- include calls
story_mend(1, 'zset')
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], story_ms(story_now() + tonumber(ARGV[2])), ARGV[1])
return 1
