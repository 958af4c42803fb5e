-- Ranks the turns of one owner for a question by BM25; a hit's neighbours count too.
-- KEYS: turns, ids, words, meta. ARGV: how many are wanted, first and last day, speaker or 0, share of a neighbour's
-- score, the conversation as a turn's body holds it or nothing, then the words of the question. A neighbour is of the same
-- conversation. Returns {turns there are, how many hold each of the rarest words, then of each hit its number, score, the
-- words it or a neighbour holds as bits, and its body}.
local turns, words, meta = KEYS[1], KEYS[3], KEYS[4]
local limit, first, final, speaker, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local known = redis.call('HMGET', meta, 'count', 'length')
local count = tonumber(known[1] or '0')
if count == 0 then return {0} end
local usual = math.max(1, tonumber(known[2]) / count)
local wanted, held, terms = ARGV[6], {}, {}
for place = 7, #ARGV do
  local postings = redis.call('HGET', words, ARGV[place]) or ''
  terms[#terms + 1] = {#postings / 8, postings}
end
table.sort(terms, function(one, other) return one[1] < other[1] end)
local scores, bits, looked = {}, {}, 0
for rank, term in ipairs(terms) do
  if rank > 24 then break end
  held[rank] = term[1]
  local postings = term[2]
  -- What almost every turn holds tells nothing where rarer words do.
  if looked > 0 and (term[1] > math.max(20, count * 0.3) or looked > 60000) then postings = '' end
  looked = looked + #postings / 8
  local weight = math.log(1 + (count - term[1] + 0.5) / (term[1] + 0.5))
  local bit_of = bit.lshift(1, rank - 1)
  for at = 1, #postings, 8 do
    local number, tagged, size, day = struct.unpack('>I4BBI2', postings, at)
    if day >= first and day <= final and (speaker == 0 or tagged % 4 == speaker) then
      local often = math.floor(tagged / 4)
      scores[number] = (scores[number] or 0) + weight * often * 2.2 / (often + 1.2 * (0.4 + 0.6 * size / usual))
      bits[number] = bit.bor(bits[number] or 0, bit_of)
    end
  end
end
local bodies, conversations = {}, {}
local function body_of(number)
  if bodies[number] == nil then bodies[number] = number > 0 and redis.call('HGET', turns, number) or false end
  return bodies[number]
end
local function conversation_of(number)
  if conversations[number] == nil then
    local body = body_of(number)
    conversations[number] = body and string.match(body, '"conversation_id":"(.-)","') or false
  end
  return conversations[number]
end
local function beside(number, other)
  return scores[other] and conversation_of(number) and conversation_of(number) == conversation_of(other)
end
local function best_of(number, score)
  return score + share * math.max(scores[number - 1] or 0, scores[number + 1] or 0)
end
-- Only what may be among the hits is sorted: scores are counted in steps of the best one, from the best down.
local best, steps, counted = 0, {}, 0
for number, score in pairs(scores) do best = math.max(best, best_of(number, score)) end
for number, score in pairs(scores) do
  local step = math.floor(best_of(number, score) / best * 100)
  steps[step] = (steps[step] or 0) + 1
end
local lowest = 101
while lowest > 0 and counted < 3 * limit do
  lowest = lowest - 1
  counted = counted + (steps[lowest] or 0)
end
lowest = wanted == '' and lowest / 100 * best or 0
local ranked = {}
for number, score in pairs(scores) do
  local whole = best_of(number, score)
  if whole >= lowest then ranked[#ranked + 1] = {number, whole} end
  if share * score >= lowest then
    for _, near_by in ipairs({number - 1, number + 1}) do
      if not scores[near_by] and near_by > 0 and share > 0 then ranked[#ranked + 1] = {near_by, share * score, number} end
    end
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
  local body = not taken[number] and (not one[3] or beside(number, one[3])) and body_of(number)
  if body and (wanted == '' or string.find(body, wanted, 1, true)) then
    taken[number] = true
    local seen = bits[number] or 0
    for _, other in ipairs({number - 1, number + 1}) do
      if beside(number, other) then seen = bit.bor(seen, bits[other]) end
    end
    reply[#reply + 1] = number
    reply[#reply + 1] = tostring(one[2])
    reply[#reply + 1] = seen
    reply[#reply + 1] = body
  end
end
return reply
