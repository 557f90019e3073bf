#!lua flags=no-writes
-- needs: jobs extras scan
-- Looks at jobs, in the order given, for those that pass a filter; and gives the next chunk of the
-- index below an id. It stops when it has enough, or as much as one answer should hold.
-- ARGV: time, filter, how many to find (-1: only count), bound for the next chunk or '', ids.
-- Answers: time, jobs, what belongs to them, how many passed, how many were looked at, and the
-- chunk's start and ids.
local matches = matcher(ARGV[2])
local room, ids = tonumber(ARGV[3]), ARGV[5]
local jobs, extras, passed, seen, size = {}, {}, 0, 0, 0
for at = 1, #ids, 16 do
  if passed == room or size > READ_SIZE then break end
  local id = sub(ids, at, at + 15)
  local raw = matches(id)
  seen = seen + 1
  if raw then
    passed = passed + 1
    if room >= 0 then
      if raw == true then raw = call('GET', T .. 'j:' .. id) end
      size = size + #raw
      give(jobs, extras, id, raw)
    end
  end
end
local start = ARGV[4] ~= ''
  and call('ZREVRANGEBYLEX', T .. 'i', ARGV[4], '-', 'LIMIT', 0, 1)[1]
local chunk = start and call('GET', T .. 'i:' .. start)
return { now, jobs, extras, passed, seen, start or '', chunk or '' }
