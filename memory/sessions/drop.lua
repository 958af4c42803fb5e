-- Removes a session.
-- KEYS: the nine of `memory.keys.SessionKeys`
-- ARGV: 1 to drop a running one
-- Returns: {user, supervisor}; 0: it runs
-- include calls
local told = session_call('HMGET', KEYS[1], 'state', 'user_id', 'supervisor_id')
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
if told[1] == 'running' and ARGV[1] ~= '1' then return 0 end
redis.call('UNLINK', unpack(KEYS))
return {told[2] or '', told[3] or ''}
