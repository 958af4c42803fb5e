-- Lists a task among those that wait, in order of arrival; its next look is stored by now.
-- KEYS: see places
-- ARGV: now_ms or nothing, task, limit, 0, arrival
-- Returns: 1: it waits; 0: there is a place for it by now
-- include ../budgets/clock
-- include places
if redis.call('HEXISTS', runs, name) == 1 then return 1 end
redis.call('ZADD', queue, 'NX', ARGV[5], name)
redis.call('ZADD', seen, text(now), name)
redis.call('PEXPIRE', queue, KEEP)
redis.call('PEXPIRE', seen, KEEP)
return redis.call('ZRANK', queue, name) < free() and 0 or 1
