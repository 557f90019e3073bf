#!lua flags=no-writes
-- needs: jobs extras
-- Reads jobs, the first of them if they are large. ARGV: time, ids.
-- Answers: the time, their strings, and what belongs to them.
local raws, extras, size = {}, {}, 0
for n = 2, #ARGV do
  if size > READ_SIZE then break end
  local raw = call('GET', T .. 'j:' .. ARGV[n])
  raws[n - 1] = raw
  if raw then
    size = size + #raw
    add_extras(extras, n - 2, ARGV[n], raw)
  end
end
return { now, raws, extras }
