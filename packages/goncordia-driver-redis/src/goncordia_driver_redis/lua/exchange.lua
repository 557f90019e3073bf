#!lua flags=allow-oom
-- needs: times jobs store extras wakes lines waiting unique index finish removal fetch
-- Finishes claims, each only if it is the claim that it names, and claims what is due, in one step.
-- It works when memory is full, for it is what empties it.
--
-- ARGV: time, the request or '', how many finished jobs of a state to keep or '', finishes.
-- Answers: of each finish a number, and the fetch's.
local outcomes = {}
expect('HLEN', T .. 'r')
expect('SCARD', T .. 'told')
if ARGV[2] ~= '' then expect('ZCARD', T .. 'c:' .. sub(ARGV[2], 1, 16)) end
if #ARGV > 3 then
  expect('SCARD', T .. 'se')
  local raws, seen = {}, {}
  for n = 4, #ARGV do raws[n] = job_header(sub(ARGV[n], 1, 16)) end
  for n = 4, #ARGV do
    local text = ARGV[n]
    local id = sub(text, 1, 16)
    outcomes[n - 3] = finish(seen[id] and job_header(id) or raws[n], text)
    seen[id] = true
  end
  local ended = finished
  settle_claims()
  settle_lines()
  local keep = tonumber(ARGV[3])
  if keep then
    local _, forget_finished = removal()
    for state in pairs(ended) do
      -- Twice as many as came, at most: so a backlog goes too, and no call takes long.
      local over = math.min(call('ZCARD', T .. 'd:' .. state) - keep, 2 * (#ARGV - 3))
      if over > 0 then
        forget_finished(state, call('ZRANGE', T .. 'd:' .. state, 0, over - 1))
      end
    end
  end
end
local fetched = ARGV[2] ~= '' and fetch(ARGV[2])
tell()
return { outcomes, fetched }
