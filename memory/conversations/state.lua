-- Reads the state: `seen`, `own` by number, `tasks` in the order in which they took, `known` (the task ARGV[3]).
local told = redis.call('HMGET', STATE, 'seen', 'own', 'tasks')
local seen, own, tasks, known = tonumber(told[1] or '0'), {}, {}, nil
for number in string.gmatch(told[2] or '', '%d+') do own[tonumber(number)] = true end
for line in string.gmatch(told[3] or '', '[^\n]+') do
  local id, from, upto, settled = string.match(line, '^(%S+) (%d+) (%d+) (%d)$')
  local task = id and {id = id, from = tonumber(from), upto = tonumber(upto), settled = settled == '1'}
  if id == ARGV[3] then known = task end
  tasks[#tasks + 1] = task
end

local function remember(most)
  local lines, numbers, shown = {}, {}, seen
  for at = math.max(1, #tasks - most + 1), #tasks do
    local task = tasks[at]
    shown = math.min(shown, task.from)
    lines[#lines + 1] =
      task.id .. ' ' .. whole(task.from) .. ' ' .. whole(task.upto) .. ' ' .. (task.settled and '1' or '0') .. '\n'
  end
  while own[seen + 1] and seen < 2 ^ 53 do seen = seen + 1 end
  for number in pairs(own) do
    if number > shown and number > total - keep then numbers[#numbers + 1] = whole(number) end
  end
  redis.call('HSET', STATE,
    'seen', whole(seen), 'own', table.concat(numbers, ' '), 'tasks', table.concat(lines))
end
