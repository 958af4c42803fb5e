-- Notes why a run is to be cancelled; the first reason counts.
-- ARGV: reason
-- Returns: 1: noted; 0: it does not run
-- include run_calls
if redis.call('HGET', root, 'state') ~= 'running' then return 0 end
redis.call('HSETNX', root, 'wish', ARGV[1])
return 1
