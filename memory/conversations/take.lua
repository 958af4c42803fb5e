-- Takes what waits in the inbox into the conversation, for a task.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: keep, keep_ms, task, window, then id and body of each that arrives
-- Returns: {1 when an earlier run of the task settled, how many it takes as new, numbers of own messages, digest as
--   {field, value, ...}, number of the first, {body, ...}}; the last so many are new, but for own ones among them: what
--   the agent said before it took the others
-- include append
-- include state
local window = tonumber(ARGV[4])
for at = 5, #ARGV, 2 do add(ARGV[at], ARGV[at + 1]) end

-- What it took, it takes again, but for what another task has settled meanwhile.
if not (known and (known.settled or seen <= known.from)) then
  local waiting = redis.call('LRANGE', INBOX, 0, -1)
  for at = 1, #waiting, 2 do put(waiting[at], waiting[at + 1]) end
  redis.call('DEL', INBOX)
  bound()
  if known then
    for at, task in ipairs(tasks) do
      if task == known then table.remove(tasks, at) break end
    end
  end
  known = {id = ARGV[3], from = math.max(seen, total - left), upto = total}
  tasks[#tasks + 1] = known
  remember(32)
  fold(math.min(known.from, total - window))
else
  bound()
end

local gone, upto = total - left, known.upto
local start = math.max(gone, math.min(tonumber(redis.call('HGET', DIGEST, 'count') or '0'), known.from))
local numbers = {}
for number in pairs(own) do
  if number > known.from and number <= upto then numbers[#numbers + 1] = number end
end
local bodies = upto > start and redis.call('LRANGE', SAID, start - gone, upto - gone - 1) or {}
local new = upto - math.max(start, known.from)
return finish({
  known.settled and 1 or 0, math.max(0, new), numbers, redis.call('HGETALL', DIGEST), start + 1, bodies
})
