#!lua flags=no-writes
-- needs:
-- Queues that have waiting or running jobs, some at a time; and with the first of them the pauses,
-- as name and flag in turn. ARGV: time, the cursor of the call before or 0.
-- Answers: the next cursor, 0 at the end; names; pauses.
local found, names = call('SSCAN', T .. 'qs', ARGV[2], 'COUNT', 200), {}
for _, name in ipairs(found[2]) do
  if call('EXISTS', T .. 'hq:' .. name, T .. 'hg:' .. name) > 0
    or call('HEXISTS', T .. 'r', name) == 1 then
    names[#names + 1] = name
  end
end
return { found[1], names, ARGV[2] == '0' and call('HGETALL', T .. 'p') or {} }
