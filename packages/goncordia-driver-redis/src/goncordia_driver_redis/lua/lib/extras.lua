-- What a reader needs beside the strings: errors, checkpoint and output of the job at this place.
local function add_extras(extras, place, id, raw)
  if band(byte(raw), FULL) == 0 then return end
  local marks = byte(raw, 21)
  if band(marks, HAS_ERRORS + HAS_EXTRAS) == 0 then return end
  local kept = { false, false }
  if band(marks, HAS_EXTRAS) ~= 0 then kept = call('HMGET', T .. 'x:' .. id, 'c', 'o') end
  extras[#extras + 1] = { place, call('LRANGE', T .. 'e:' .. id, 0, -1), kept[1], kept[2] }
end

-- Puts a job into an answer: its id and its string, and what belongs to it.
local function give(jobs, extras, id, raw)
  add_extras(extras, #jobs / 2, id, raw)
  jobs[#jobs + 1] = id
  jobs[#jobs + 1] = raw
end
