-- Replaces the body of a record and takes words out of the indexes.
-- KEYS: records, words, marks, vocabulary, by, index of each word
-- ARGV: id, its line of words as it was found and as it is to be, body, each word that goes
-- Returns: 1: done; 0: it has changed
-- include shared
local records, words, marks, vocabulary, by = unpack(KEYS, 1, 5)
local id, line = ARGV[1], redis.call('HGET', words, ARGV[1])
if line ~= ARGV[2] then return 0 end
local at = string.match(redis.call('HGET', records, id), '^%d+')
redis.call('HSET', records, id, at .. ' ' .. number(now) .. ' ' .. ARGV[4])
redis.call('HSET', words, id, ARGV[3])
for index = 6, #KEYS do
  redis.call('ZREM', KEYS[index], id)
  if redis.call('EXISTS', KEYS[index]) == 0 then redis.call('ZREM', vocabulary, ARGV[index - 1]) end
end
redis.call('ZREM', by, id)
mark(marks, string.sub(id, 1, 1), line, id)
return 1
