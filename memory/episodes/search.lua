-- Ranks the turns of one owner for a question by BM25; a hit's neighbours count too.
-- KEYS: turns, ids, words, meta. ARGV: how many are wanted, first and last day, speaker or 0, share of a neighbour's
-- score, then the words of the question. Returns {turns there are, how many hold each word, then of each hit its number,
-- score, the words it or a neighbour holds as bits, and its body}.
local turns, words, meta = KEYS[1], KEYS[3], KEYS[4]
local limit, first, final, speaker, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local known = redis.call('HMGET', meta, 'count', 'length')
local count = tonumber(known[1] or '0')
if count == 0 then return {0} end
local usual = math.max(1, tonumber(known[2]) / count)
local held, terms = {}, {}
for place = 6, #ARGV do
  local postings = redis.call('HGET', words, ARGV[place]) or ''
  held[place - 5] = #postings / 8
  if #postings > 0 then terms[#terms + 1] = {#postings / 8, postings, place - 6} end
end
table.sort(terms, function(one, other) return one[1] < other[1] end)
local scores, bits, looked = {}, {}, 0
for rank, term in ipairs(terms) do
  -- What almost every turn holds tells nothing where rarer words do.
  if rank > 1 and (term[1] > math.max(20, count * 0.3) or looked > 60000) then break end
  looked = looked + term[1]
  local weight = math.log(1 + (count - term[1] + 0.5) / (term[1] + 0.5))
  local bit_of, postings = bit.lshift(1, term[3]), term[2]
  for at = 1, #postings, 8 do
    local number, tagged, size, day = struct.unpack('>I4BBI2', postings, at)
    if day >= first and day <= final and (speaker == 0 or tagged % 4 == speaker) then
      local often = math.floor(tagged / 4)
      scores[number] = (scores[number] or 0) + weight * often * 2.2 / (often + 1.2 * (0.4 + 0.6 * size / usual))
      bits[number] = bit.bor(bits[number] or 0, bit_of)
    end
  end
end
local ranked = {}
for number, score in pairs(scores) do
  local near = math.max(scores[number - 1] or 0, scores[number + 1] or 0)
  ranked[#ranked + 1] = {number, score + share * near}
  for _, beside in ipairs({number - 1, number + 1}) do
    if not scores[beside] and beside > 0 and share > 0 then ranked[#ranked + 1] = {beside, share * score} end
  end
end
table.sort(ranked, function(one, other)
  if one[2] ~= other[2] then return one[2] > other[2] end
  return one[1] > other[1]
end)
local reply, taken = {count, held}, {}
for _, one in ipairs(ranked) do
  if #reply >= 2 + 4 * limit then break end
  local number = one[1]
  local body = not taken[number] and redis.call('HGET', turns, number)
  if body then
    taken[number] = true
    local seen = bit.bor(bits[number] or 0, bit.bor(bits[number - 1] or 0, bits[number + 1] or 0))
    reply[#reply + 1] = number
    reply[#reply + 1] = tostring(one[2])
    reply[#reply + 1] = seen
    reply[#reply + 1] = body
  end
end
return reply
