-- Ranks the passages of one owner's turns for a question by BM25; a hit's neighbours count too.
-- KEYS: turns, ids, words, meta. ARGV: how many are wanted, first and last day, speaker or 0, share of a neighbour's score,
-- the conversation as a turn's body holds it or nothing, first and last day that the question speaks of, what these days
-- raise as a share of the best score or 0, 1 for all scores, how many months these days touch, how many names are asked
-- about, how many words the question has, these months, these names, these words, and others that are looked for where too
-- few passages have one of these, and rank behind. A neighbour is of the same conversation. What a person only asks is no
-- hit, but lends to what comes next.
-- Returns {turns there are, passages, how many hold each of the rarest words, mean and deviation of the scores of all
-- passages, all scores as number and float (below 0 of what only asks), the numbers that are raised, how many of the names
-- stand in what does not only ask, then of each hit its number, that of its turn, score, the words it or a neighbour
-- holds as bits, and the turn's body}.
local turns, words, meta = KEYS[1], KEYS[3], KEYS[4]
local limit, first, final, speaker, share = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local begins, ends, raise, is_all, months, names, asks = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10] == '1', tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local known = redis.call('HMGET', meta, 'count', 'length', 'further')
local count = tonumber(known[1] or '0')
if count == 0 then return {0} end
local passages = count + tonumber(known[3] or '0')
local usual = math.max(1, tonumber(known[2]) / passages)
local wanted, held, heard = ARGV[6], {}, 0
for place = 14 + months, 13 + months + names do
  local postings = redis.call('HGET', words, ARGV[place]) or ''
  for at = 5, #postings, 8 do
    if string.byte(postings, at) % 4 > 0 then
      heard = heard + 1
      break
    end
  end
end
-- Below so many passages other words are looked for, which count for so much; in so many postings where there are some.
local few, little, most = 10, 0.02, 500
local function look_for(place, last)
  local found = {}
  for at = place, last do
    local postings = redis.call('HGET', words, ARGV[at]) or ''
    found[#found + 1] = {#postings / 8, postings}
  end
  table.sort(found, function(one, other) return one[1] < other[1] end)
  return found
end
local scores, asked, bits, days, looked, scored = {}, {}, {}, {}, 0, 0
local unpack_posting = struct.unpack
local flat, steep = 0.48, 0.72 / usual
local function add(postings, weight, bit_of)
  for at = 1, #postings, 8 do
    local number, tagged, size, day = unpack_posting('>I4BBI2', postings, at)
    local by = tagged % 4
    if day >= first and day <= final and (speaker == 0 or by == speaker) then
      local often = (tagged - by) / 4
      local of = by == 0 and asked or scores
      if by > 0 and not of[number] then scored = scored + 1 end
      of[number] = (of[number] or 0) + weight * often / (often + flat + steep * size)
      bits[number] = (bits[number] or 0) + bit_of
      if raise > 0 then days[number] = day end
    end
  end
end
local function weight_of(count)
  return 2.2 * math.log(1 + (passages - count + 0.5) / (count + 0.5))
end
local begin = 14 + months + names
for rank, term in ipairs(look_for(begin, begin + asks - 1)) do
  if rank > 24 then break end
  held[rank] = term[1]
  local postings = term[2]
  -- What almost every turn holds tells nothing where rarer words do.
  if looked > 0 and (term[1] > math.max(20, passages * 0.3) or looked > 60000) then postings = '' end
  looked = looked + #postings / 8
  add(postings, weight_of(term[1]), 2 ^ (rank - 1))
end
if scored < few then
  looked = 0
  for rank, term in ipairs(look_for(begin + asks, #ARGV)) do
    looked = looked + term[1]
    if rank > 24 or looked > (scored > 0 and most or 60000) then break end
    add(term[2], little * weight_of(term[1]), 0)
  end
end
local sum, squares, top, packed = 0, 0, 0, {}
for number, score in pairs(scores) do
  sum, squares, top = sum + score, squares + score * score, math.max(top, score)
  if is_all then packed[#packed + 1] = struct.pack('>I4f', number, score) end
end
if is_all then
  for number, score in pairs(asked) do packed[#packed + 1] = struct.pack('>I4f', number, -score) end
end
local mean = sum / passages
local deviation = math.sqrt(math.max(0, squares / passages - mean * mean))
local raised = {}
if raise > 0 then
  for number, day in pairs(days) do
    if day >= begins and day <= ends and scores[number] then raised[number] = true end
  end
  for place = 14, 13 + months do
    local postings = redis.call('HGET', words, ARGV[place]) or ''
    for at = 1, #postings, 8 do
      local number, tagged, _, day = unpack_posting('>I4BBI2', postings, at)
      local by = tagged % 4
      if by > 0 and day >= begins and day <= ends and day >= first and day <= final and (speaker == 0 or by == speaker) then
        raised[number] = true
      end
    end
  end
end
local bonus = raise * (top > 0 and top or 1)
local bodies, firsts, conversations = {}, {}, {}
local function body_of(number)
  if bodies[number] == nil then
    local body, of = redis.call('HGET', turns, number), number
    if not body then
      of = tonumber(redis.call('HGET', turns, 'p' .. number))
      body = of and redis.call('HGET', turns, of) or false
    end
    bodies[number], firsts[number] = body, of
  end
  return bodies[number]
end
local function conversation_of(number)
  if conversations[number] == nil then
    local body = body_of(number)
    conversations[number] = body and string.match(body, '"conversation_id":"(.-)","') or false
  end
  return conversations[number]
end
local function lends(number)
  return scores[number] or asked[number]
end
local function beside(number, other)
  return lends(other) and conversation_of(number) and conversation_of(number) == conversation_of(other)
end
local function best_of(number, score)
  local lent = math.max(scores[number - 1] or asked[number - 1] or 0, scores[number + 1] or 0)
  return score + share * lent + (raised[number] and bonus or 0)
end
-- Only what may be among the hits is sorted: scores are counted in steps of the best one, from the best down.
local lifted = {}
for number in pairs(raised) do
  if is_all then lifted[#lifted + 1] = struct.pack('>I4', number) end
  if not scores[number] then scores[number] = 0 end
end
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
  if share > 0 and share * score >= lowest then
    for _, near_by in ipairs({number - 1, number + 1}) do
      if not lends(near_by) and near_by > 0 then ranked[#ranked + 1] = {near_by, share * score, number} end
    end
  end
end
for number, score in pairs(asked) do
  if share > 0 and share * score >= lowest and not lends(number + 1) then
    ranked[#ranked + 1] = {number + 1, share * score, number}
  end
end
table.sort(ranked, function(one, other)
  if one[2] ~= other[2] then return one[2] > other[2] end
  return one[1] > other[1]
end)
local reply, taken = {count, passages, held, tostring(mean), tostring(deviation), table.concat(packed), table.concat(lifted), heard}, {}
for _, one in ipairs(ranked) do
  if #reply >= 8 + 5 * limit then break end
  local number = one[1]
  local body = not taken[number] and (not one[3] or beside(number, one[3])) and body_of(number)
  if body and (wanted == '' or string.find(body, wanted, 1, true)) then
    taken[number] = true
    local seen = bits[number] or 0
    -- By words alone nobody asks how much of the question a hit and its neighbours hold.
    for _, other in ipairs(is_all and {number - 1, number + 1} or {}) do
      if bits[other] and beside(number, other) then seen = bit.bor(seen, bits[other]) end
    end
    reply[#reply + 1] = number
    reply[#reply + 1] = firsts[number]
    reply[#reply + 1] = tostring(one[2])
    reply[#reply + 1] = seen
    reply[#reply + 1] = body
  end
end
return reply
