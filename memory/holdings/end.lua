-- Ends things: each goes, and what stays of it is counted to its owner together with others of its kinds.
-- KEYS: of the holdings
-- ARGV: for each thing: its name, how many kinds stay, and for each of them: store, kind, bytes, ms that it is kept
-- Returns: how many things there were
-- include names
local number, at = 0, 1
while at <= #ARGV do
  local owner, stay = drop(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  if owner then number = number + 1 end
  for _ = 1, stay do
    if owner then
      local store, kind, bytes, keep = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
      local thing, ends = together(kind, owner, keep)
      local _, _, had = find(thing)
      put(thing, store, owner, bytes + had, 0, ends)
    end
    at = at + 4
  end
end
return number
