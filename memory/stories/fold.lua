-- Stores document, record and changes of a response, all or nothing.
-- KEYS: base, documents, records, written, responses, then hashes of changes
-- ARGV: number, revision, document or nothing to leave it, record, how many to keep, digest of the response that was analysed or nothing
--   for whichever is stored, 1 while the analysis is under way, revision that it rests on, then for each hash of changes what to put
--   there under the number, or nothing to remove it
-- Returns: 1: done; 0: the story has another revision; -1: there is no story
-- Beside each record lie, by its number, `:` the digest of the text it is of, `+` until when nothing of the response goes, `@` the
-- revision that it rests on. What is under way is not listed by when it was written, and so never goes.
-- include calls
for at = 1, #KEYS do story_mend(at, at == 4 and 'zset' or 'hash') end
local number, document = ARGV[1], ARGV[3]
local told = redis.call('HMGET', KEYS[1], 'revision', 'last')
if not told[1] then return -1 end
local digest = redis.call('HGET', KEYS[5], ':' .. number)
if told[1] ~= ARGV[2] or (ARGV[6] ~= '' and digest ~= ARGV[6]) then return 0 end
if document ~= '' then
  redis.call('HSET', KEYS[2], number, document)
  if digest then redis.call('HSET', KEYS[3], ':' .. number, digest) end
end
redis.call('HSET', KEYS[3], number, ARGV[4], '@' .. number, ARGV[8])
local is_other = false
for at = 6, #KEYS do
  is_other = is_other or (redis.call('HGET', KEYS[at], number) or '') ~= ARGV[at + 3]
  if ARGV[at + 3] == '' then
    redis.call('HDEL', KEYS[at], number)
  else
    redis.call('HSET', KEYS[at], number, ARGV[at + 3])
  end
end
redis.call('HSET', KEYS[1], 'updated_at', story_ms(story_now()))
local after = redis.call('HINCRBY', KEYS[1], 'revision', 1)
if is_other and told[2] and tonumber(number) < tonumber(told[2]) then redis.call('HSET', KEYS[1], 'earlier', after) end
if ARGV[7] == '1' then
  redis.call('HSET', KEYS[3], '+' .. number, '999999999999999')
  redis.call('ZREM', KEYS[4], number)
else
  redis.call('HDEL', KEYS[3], '+' .. number)
  redis.call('ZADD', KEYS[4], redis.call('HINCRBY', KEYS[1], 'writes', 1), number)
  story_keep(4, ARGV[5], 2, 3)
end
return 1
