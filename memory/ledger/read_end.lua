-- Reads how far the generations of a task are.
-- KEYS: of entry.lua
-- ARGV: of entry.lua
-- Returns: the names of its fields, and the bytes of its first report
-- include entry
return {redis.call('HKEYS', key), pointer and redis.call('STRLEN', key .. ':report:1') or redis.call('HSTRLEN', key, 'report:1')}
