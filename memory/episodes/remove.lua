-- Takes turns of one owner out, with every trace of their words in the index.
-- KEYS: turns, ids, words, meta, vectors. ARGV: the number before which no vector stays, then for each passage of a turn its
-- number, the turn's id or nothing for a passage but the first, how many words it has in all, how many different ones,
-- then these. Returns how many turns were there.
local turns, ids, words, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local at, removed, further, length, gone = 2, 0, 0, 0, {}
while at < #ARGV do
  local number, id, count = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 3])
  if redis.call('HDEL', turns, id == '' and 'p' .. number or number) == 1 then
    length = length + tonumber(ARGV[at + 2])
    if id == '' then
      further = further + 1
    else
      removed = removed + 1
      redis.call('HDEL', ids, id)
    end
    for place = at + 4, at + 3 + count do
      gone[ARGV[place]] = gone[ARGV[place]] or {}
      gone[ARGV[place]][tonumber(number)] = true
    end
  end
  at = at + 4 + count
end
for word, numbers in pairs(gone) do
  local postings, kept = redis.call('HGET', words, word) or '', {}
  for place = 1, #postings, 8 do
    if not numbers[struct.unpack('>I4', postings, place)] then kept[#kept + 1] = string.sub(postings, place, place + 7) end
  end
  if #kept == 0 then
    redis.call('HDEL', words, word)
  else
    redis.call('HSET', words, word, table.concat(kept))
  end
end
local width, start = tonumber(redis.call('HGET', meta, 'width') or '0'), 0
if width > 0 then
  local vectors = redis.call('GET', KEYS[5]) or ''
  while start < #vectors and struct.unpack('>I4', vectors, start + 1) < tonumber(ARGV[1]) do start = start + width end
  if start > 0 then redis.call('SET', KEYS[5], string.sub(vectors, start + 1), 'KEEPTTL') end
end
if removed + further > 0 then
  redis.call('HINCRBY', meta, 'count', -removed)
  redis.call('HINCRBY', meta, 'length', -length)
  if further > 0 then redis.call('HINCRBY', meta, 'further', -further) end
end
return removed
