-- Lists an analysis as under way.
-- KEYS: index
-- ARGV: member, ms from now
-- include calls
story_mend(1, 'zset')
redis.call('ZADD', KEYS[1], story_ms(story_now() + tonumber(ARGV[2])), ARGV[1])
return false
