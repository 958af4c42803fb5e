-- Keeps turns of one owner, each once by its id, and indexes their words; none that was said before a tombstone.
-- KEYS: turns, ids, words, meta, tombstone. ARGV: for each turn its id, body, day, speaker (1 to 3), when it was said in ms
-- since 1970, how many words, then each word and how often it stands there. Returns how many were new, and the number of
-- the last one there is.
local turns, ids, words, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local known = redis.call('HMGET', meta, 'last', 'length')
local last, length = tonumber(known[1] or '0'), tonumber(known[2] or '0')
local hidden_until = tonumber(redis.call('HGET', KEYS[5], '#until') or '-1')
local at, new, postings = 1, 0, {}
while at < #ARGV do
  local id, body, day, speaker = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local said_ms, count = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  at = at + 6
  if said_ms > hidden_until and redis.call('HEXISTS', ids, id) == 0 then
    last, new = last + 1, new + 1
    local total = 0
    for place = at, at + 2 * (count - 1), 2 do total = total + tonumber(ARGV[place + 1]) end
    length = length + total
    redis.call('HSET', ids, id, last)
    redis.call('HSET', turns, last, body)
    local tail = struct.pack('>BI2', math.min(total, 255), day)
    for place = at, at + 2 * (count - 1), 2 do
      local often = math.min(tonumber(ARGV[place + 1]), 63)
      local posting = struct.pack('>I4B', last, often * 4 + speaker) .. tail
      postings[ARGV[place]] = (postings[ARGV[place]] or '') .. posting
    end
  end
  at = at + 2 * count
end
if new > 0 then
  for word, more in pairs(postings) do
    redis.call('HSET', words, word, (redis.call('HGET', words, word) or '') .. more)
  end
  redis.call('HSET', meta, 'last', last, 'length', length)
  redis.call('HINCRBY', meta, 'count', new)
  redis.call('HSETNX', meta, 'born', table.concat(redis.call('TIME'), '.'))
end
return {new, last}
