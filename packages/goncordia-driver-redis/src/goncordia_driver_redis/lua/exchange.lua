#!lua flags=allow-oom
-- needs: times jobs store extras wakes lines waiting keys finish fetch
-- Finishes claims, each only if it is the claim that it names, and claims what is due, in one step.
-- It works when memory is full, for it is what empties it.
--
-- ARGV: time, the request or '', finishes. Answers: of each finish a number, and the fetch's.
local outcomes = {}
if #ARGV > 2 then
  expect('hash', T .. 'r')
  local raws, seen = {}, {}
  for n = 3, #ARGV do raws[n] = job_header(sub(ARGV[n], 1, 16)) end
  for n = 3, #ARGV do
    local text = ARGV[n]
    local id = sub(text, 1, 16)
    outcomes[n - 2] = finish(seen[id] and job_header(id) or raws[n], text)
    seen[id] = true
  end
  settle_claims()
  settle_lines()
end
local fetched = ARGV[2] ~= '' and fetch(ARGV[2])
tell()
return { outcomes, fetched }
