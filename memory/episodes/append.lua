-- Keeps turns of one owner, each once by its id, and indexes their words, passage by passage; none that was said before a
-- tombstone.
-- KEYS: turns, ids, words, meta, tombstone. ARGV: for each turn its id, body, day, speaker (1 to 3, 0 for a person who only
-- asks), when it was said in ms since 1970, number of passages, then for each of these how many words it has, how many
-- different ones, then each word and how often it stands there. Of a passage but the first, `p` and its number say the number of the first:
-- version 0.2 reads a bare number as that of a turn.
-- Returns how many were new, and the number of the last passage there is.
local turns, ids, words, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local known = redis.call('HMGET', meta, 'last', 'length')
local last, length = tonumber(known[1] or '0'), tonumber(known[2] or '0')
local hidden_until = tonumber(redis.call('HGET', KEYS[5], '#until') or '-1')
local at, new, further, postings = 1, 0, 0, {}
while at < #ARGV do
  local id, body, day, speaker = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local said_ms, passages = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  at = at + 6
  local is_new, first = said_ms > hidden_until and redis.call('HEXISTS', ids, id) == 0, last + 1
  if is_new then
    new, further = new + 1, further + passages - 1
    redis.call('HSET', ids, id, first)
  end
  for passage = 1, passages do
    local total, count = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    at = at + 2
    if is_new then
      last, length = last + 1, length + total
      if passage == 1 then redis.call('HSET', turns, last, body) else redis.call('HSET', turns, 'p' .. last, first) end
      local tail = struct.pack('>BI2', math.min(total, 255), day)
      for place = at, at + 2 * (count - 1), 2 do
        local often = math.min(tonumber(ARGV[place + 1]), 63)
        local posting = struct.pack('>I4B', last, often * 4 + speaker) .. tail
        postings[ARGV[place]] = (postings[ARGV[place]] or '') .. posting
      end
    end
    at = at + 2 * count
  end
end
if new > 0 then
  for word, more in pairs(postings) do
    redis.call('HSET', words, word, (redis.call('HGET', words, word) or '') .. more)
  end
  redis.call('HSET', meta, 'last', last, 'length', length)
  redis.call('HINCRBY', meta, 'count', new)
  if further > 0 then redis.call('HINCRBY', meta, 'further', further) end
  redis.call('HSETNX', meta, 'born', table.concat(redis.call('TIME'), '.'))
end
return {new, last}
