-- Ends a run without a report.
-- KEYS: of entry.lua
-- ARGV: of entry.lua, generation, token, weight: 0, 1 to excuse the run, or 2 to take it back from the attempts
-- Returns: 1: done; 0: it ended, or is not that run
-- include end_run
if ARGV[3] == '1' then redis.call('HINCRBY', key, 'excused' .. g, 1) end
if ARGV[3] == '2' then redis.call('HINCRBY', key, 'attempts' .. g, -1) end
return 1
