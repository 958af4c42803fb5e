-- Notes that a phase came further.
-- ARGV: fence
-- Returns: 1: noted; 0: the fence is lost
-- include run_calls
if not is_fenced(ARGV[1]) then return 0 end
redis.call('HDEL', root, 'lapses')
return 1
