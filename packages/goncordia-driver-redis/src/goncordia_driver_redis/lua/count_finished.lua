#!lua flags=no-writes
-- needs:
-- How many jobs are in each of these finished states, whoever holds its unique key.
-- ARGV: time, states.
local counts = {}
for n = 2, #ARGV do
  local state = ARGV[n]
  counts[n - 1] = call('ZCARD', T .. 'd:' .. state) + call('ZCARD', T .. 'dh:' .. state)
    + call('SCARD', T .. 'dk:' .. state)
end
return counts
