#!lua flags=no-writes
-- needs: jobs extras
-- Reads jobs. ARGV: time, ids. Answers: the time, their strings, and what belongs to them.
local raws, extras = {}, {}
for n = 2, #ARGV do
  local raw = call('GET', T .. 'j:' .. ARGV[n])
  raws[n - 1] = raw
  if raw then add_extras(extras, n - 2, ARGV[n], raw) end
end
return { now, raws, extras }
