-- Defines `error_of(report)`: the type of its error and at most 200 bytes of that and its message; nil without one
local function error_of(report)
  local is_read, body = pcall(cjson.decode, report)
  local noted = is_read and type(body) == 'table' and body.error
  if type(noted) ~= 'table' then return nil end
  local text = tostring(noted.type) .. ': ' .. tostring(noted.message)
  -- No character is cut in two.
  local last = 200
  while last > 0 and (string.byte(text, last + 1) or 0) >= 128 and string.byte(text, last + 1) < 192 do last = last - 1 end
  return string.sub(text, 1, last)
end
