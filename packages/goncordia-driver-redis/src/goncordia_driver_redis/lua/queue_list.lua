#!lua flags=allow-oom
-- needs:
-- The queues that have waiting or running jobs, and the pauses, as name and flag in turn. Queues
-- that have run empty are forgotten on the way.
local names = {}
for _, name in ipairs(call('SMEMBERS', T .. 'qs')) do
  if call('EXISTS', T .. 'h:' .. name, T .. 'hg:' .. name) > 0
    or call('HEXISTS', T .. 'r', name) == 1 then
    names[#names + 1] = name
  else
    call('SREM', T .. 'qs', name)
    call('SREM', T .. 'told', name)
  end
end
return { names, call('HGETALL', T .. 'p') }
