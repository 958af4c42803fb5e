-- Notes that a task has used what it took, and adds what it said.
-- KEYS: said, ids, inbox, state, digest, the first five of `memory.keys.ConversationKeys`
-- ARGV: keep, keep_ms, task, id of what was said or nothing, its body
-- Returns: number of the last that was seen
-- include append
-- include state
if known then
  known.settled = true
  seen = math.max(seen, known.upto)
end
if ARGV[4] ~= '' and add(ARGV[4], ARGV[5]) == 1 then own[total] = true end
remember(32)
return finish(seen)
