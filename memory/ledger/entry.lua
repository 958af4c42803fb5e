-- Chooses the entry of a task: that of layout 1 where there is one, else that of layout 2, else the one that is to be
-- made. Takes its own keys and its word off KEYS and ARGV, and puts the entry that is chosen at the head of KEYS.
-- KEYS: in layout 1: task; in 2: entry, pointer; where both are read (prepared and migrating): task, entry, pointer
-- ARGV[1]: the layout, and but in 1 the agent behind it; prepared makes entries in layout 1, migrating in layout 2
-- Defines `key`; `pointer`, false in layout 1; `agent`; `layout`
local layout, agent, key, pointer = table.remove(ARGV, 1), '', KEYS[1], false
if layout ~= '1' then
  layout, agent = string.match(layout, '^(%w+) ?(.*)$')
  if layout ~= '1' then
    table.remove(KEYS, 1)
    if layout == '2' then
      pointer = table.remove(KEYS, 1)
    else
      local entry, leading = table.remove(KEYS, 1), table.remove(KEYS, 1)
      if redis.call('EXISTS', key) == 0 and (layout == 'migrating' or redis.call('EXISTS', entry, leading) > 0) then
        key, pointer = entry, leading
      end
    end
    table.insert(KEYS, 1, key)
  end
end
