-- Makes a session and its run.
-- ARGV: token, 1 unless it may have ended, words of root, phases, corrected, seen
-- Returns: 1: made; 0: taken
-- include run_calls
if redis.call('EXISTS', root) == 1 then return redis.call('HGET', root, 'made_by') == ARGV[1] and 1 or 0 end
if ARGV[2] == '1' and redis.call('EXISTS', outcome) == 1 then return 0 end
redis.call('UNLINK', unpack(KEYS))
local now = session_ms(session_now())
redis.call('HSET', root, 'made_by', ARGV[1], 'created_at', now)
put_words(seen, put_words(corrected, put_words(phases, put_words(root, 3))))
touch(now)
return 1
