-- Keeps the marks that a phase saw beside the session.
-- ARGV: fence, phase, marks
-- Returns: 1: noted; 0: the fence is lost
-- include run_calls
if not is_fenced(ARGV[1]) then return 0 end
redis.call('HSET', seen, ARGV[2], ARGV[3])
touch()
return 1
