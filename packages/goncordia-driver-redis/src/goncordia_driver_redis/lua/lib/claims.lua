-- What a fetch has taken becomes claims, all of it or nothing.
local claimed = {}

-- The string of a job that is claimed now, and its marks.
local function claimed_string(raw, session, fetch_no, worker)
  local flags, size, created, at = read('<BHd', raw)
  local run_at, max, marks, attempt, ended, ended_no = created, -1, 0, 0, NOBODY, 0
  if band(flags, FULL) ~= 0 then
    local _
    _, _, _, run_at, _, marks, attempt, max, _, _, _, _, ended, ended_no, _, at =
      read(HEAD .. 'Hc0', raw)
    if band(marks, STARTED) ~= 0 then marks = marks - STARTED end
  else
    if band(flags, RUN_AT) ~= 0 then run_at, at = read('<d', raw, at) end
    if band(flags, LIMITED) ~= 0 then max, at = read('<i4', raw, at) end
  end
  local common = sub(raw, at, size)
  return write(HEAD .. 'Hc0', band(flags, GROUPED + UNIQUE + TAIL) + FULL, 95 + #worker + #common,
    created, run_at, RUNNING, marks, attempt + 1, max, now, 0, session, fetch_no, ended, ended_no,
    #worker, worker) .. common .. sub(raw, size + 1), marks
end

-- Gives back what was taken for a claim, but for so many.
local function give_back(kept)
  for n = #claimed, kept + 1, -1 do
    local job = claimed[n].job
    if job then
      groups.end_run(job.group)
      groups.add(job)
    end
    claimed[n] = nil
  end
end

-- Reads the strings of what is claimed: of as many as one answer can hold, but of one at least. The
-- rest is given back.
local function read_claimed()
  local raws, size, step = {}, 0, 4
  while #raws < #claimed and (size < ANSWER_SIZE or #raws == 0) do
    local keys, most = {}, 1
    for n = #raws + 1, math.min(#raws + step, #claimed) do
      keys[#keys + 1] = T .. 'j:' .. claimed[n].id
    end
    for _, raw in ipairs(call('MGET', unpack(keys))) do
      raws[#raws + 1] = raw
      size = size + (raw and #raw or 0)
      most = math.max(most, raw and #raw or 0)
    end
    step = math.max(1, math.min(500, math.floor((ANSWER_SIZE - size) / most)))
  end
  give_back(#raws)
  return raws
end

-- Makes the answer: ids and strings in turn, and what belongs to them; and a function that writes
-- the claims.
local function make_claims(session, fetch_no, worker)
  local raws = read_claimed()
  local lines, failed, started = {}, {}, {}
  local answer, extras, values, holds, count = {}, {}, {}, {}, 0
  for n, claim in ipairs(claimed) do
    local id, name, queue = claim.id, claim.line, claim.queue
    local line = lines[name]
    if line then
      line[#line + 1] = id
    else
      lines[name] = { id }
    end
    if raws[n] then
      local text, marks = claimed_string(raws[n], session, fetch_no, worker)
      answer[count + 1], answer[count + 2] = id, text
      values[count + 1], values[count + 2] = T .. 'j:' .. id, text
      holds[count + 1], holds[count + 2] = fetch_no, id
      if marks ~= 0 then
        add_extras(extras, count / 2, id, text)
        if band(marks, FAILED) ~= 0 then
          expect('ZCARD', T .. 'f:' .. queue)
          failed[queue] = failed[queue] or {}
          table.insert(failed[queue], id)
        end
      end
      count = count + 2
      started[queue] = (started[queue] or 0) + 1
    end
  end
  return answer, extras, function()
    for name, ids in pairs(lines) do
      call('ZREM', T .. 'l:' .. name, unpack(ids))
      unsettled[name] = true
    end
    if count > 0 then
      call('MSET', unpack(values))
      call('ZADD', T .. 'c:' .. session, unpack(holds))
    end
    for queue, number in pairs(started) do call('HINCRBY', T .. 'r', queue, number) end
    for queue, ids in pairs(failed) do call('ZREM', T .. 'f:' .. queue, unpack(ids)) end
  end
end
