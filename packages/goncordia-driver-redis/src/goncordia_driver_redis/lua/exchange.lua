#!lua flags=allow-oom
-- needs: times jobs store extras wakes lines waiting unique index finish removal levels claims fetch
-- Finishes claims, each only if it is the claim that it names, and claims what is due, in one step.
-- It works when memory is full, for it is what empties it.
--
-- ARGV: time, the request or '', how many finished jobs of a state to keep or '', finishes.
-- Answers: of each finish a number, and the fetch's.
local outcomes, ended = {}, {}
expect('HLEN', T .. 'r')
expect('SCARD', T .. 'told')
if ARGV[2] ~= '' then expect('ZCARD', T .. 'c:' .. sub(ARGV[2], 1, 16)) end
if #ARGV > 3 then
  expect('SCARD', T .. 'se')
  -- All is looked at before the first is written. A job that comes twice is read once.
  local jobs, last = {}, {}
  for n = 4, #ARGV do
    local text = ARGV[n]
    local id = sub(text, 1, 16)
    local job = jobs[id]
    if job == nil then
      job = read_job(id) or false
      jobs[id] = job
    end
    if not job then
      look_at_drop(sub(text, 17, 32))
    elseif job.state == RUNNING then
      local to, given = byte(text, 41, 42)
      local plain = not (job.group or job.unique) and given < 8 and job.marks < CANCEL_ASKED
      -- Of many that are alike, one tells.
      if not (plain and to == last.to and job.session == last.session) then
        look_at_end(job, to, given)
        if plain and ENDS[to] then last = { to = to, session = job.session } end
      end
    end
  end
  for n = 4, #ARGV do outcomes[n - 3] = finish(jobs[sub(ARGV[n], 1, 16)], ARGV[n]) end
  ended = finished
  settle_claims()
  settle_lines()
end

-- Keeps as many finished jobs of the states that were reached as are to be kept.
local function trim()
  local keep = tonumber(ARGV[3])
  if not keep then return end
  local _, _, forget_finished = removal()
  for state in pairs(ended) do
    -- Twice as many as came, at most: so a backlog goes too, and no call takes long.
    local over = math.min(call('ZCARD', T .. 'd:' .. state) - keep, 2 * (#ARGV - 3))
    if over > 0 then forget_finished(state, call('ZRANGE', T .. 'd:' .. state, 0, over - 1)) end
  end
end

-- What has ended stays so, and is told, whatever happens then; each of the two is whole by itself.
local ok, answer = pcall(function()
  trim()
  return ARGV[2] ~= '' and fetch(ARGV[2])
end)
tell()
if not ok then error(answer) end
return { outcomes, answer }
