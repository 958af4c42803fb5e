-- Defines `stored` of the fields that were `read`: the report of a generation; where layout 2 has it no more {6, state,
-- ms of its end, error or ''}; false for none.
-- read: report, when it ended, state, error
local stored = read[1]
if pointer and read[2] then
  stored = redis.call('GET', key .. ':report' .. g) or {6, read[3] or '', read[2], read[4] or ''}
end
