-- Sets how far the move to layout 2 is, unless somebody else has moved on.
-- KEYS: the mark
-- ARGV: the mark as it was read, '' for none; the next one
-- Returns: 1: it is set; 0: it is another
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
