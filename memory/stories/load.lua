-- Makes a beginning that of its story.
-- KEYS: base, entities
-- ARGV: how many fields, these and their values, names and entities
-- Returns: 1: another; 0: as it was
-- include calls
story_mend(1, 'hash')
story_mend(2, 'hash')
local last = 1 + 2 * tonumber(ARGV[1])
local before = redis.call('HGET', KEYS[1], 'digest')
for at = 2, last, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
redis.call('DEL', KEYS[2])
for at = last + 1, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1]) end
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
local is_other = redis.call('HGET', KEYS[1], 'digest') ~= before
if is_other or redis.call('HEXISTS', KEYS[1], 'revision') == 0 then redis.call('HINCRBY', KEYS[1], 'revision', 1) end
return is_other and 1 or 0
