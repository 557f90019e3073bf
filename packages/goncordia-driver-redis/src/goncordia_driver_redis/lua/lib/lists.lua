-- The lists of jobs that wait or are finished. Each such job stands in one of them.
--
-- Calls `act` with the command that tells a list's size, its key, and its queue and kind if it has
-- them; and gives whether no kind of a queue lacks the lines that it has.
local function each_list(act)
  local complete = true
  for _, state in ipairs({ 'completed', 'discarded', 'cancelled' }) do
    act('ZCARD', T .. 'd:' .. state)
    act('ZCARD', T .. 'dh:' .. state)
    act('SCARD', T .. 'dk:' .. state)
  end
  for _, queue in ipairs(ask('SMEMBERS', T .. 'qs')) do
    for _, kind in ipairs(ask('SMEMBERS', T .. 'hq:' .. queue)) do
      local names = ask('ZRANGE', heads_key(queue, kind), 0, -1)
      if #names == 0 then complete = false end
      for _, name in ipairs(names) do
        -- Jobs of groups stand in the list that follows, shown or not.
        if string.match(name, '^-?%d+:(.)') == 'p' then
          act('ZCARD', T .. 'l:' .. name, queue, kind)
        end
      end
    end
    for _, kind in ipairs(ask('SMEMBERS', T .. 'hg:' .. queue)) do
      act('ZCARD', parked_key(queue, kind), queue, kind)
    end
  end
  return complete
end
