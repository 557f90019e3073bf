-- A claim ends, and what follows of it. What many jobs have in common is written once, by
-- `settle_claims`.
local DONE, ALREADY, STALE, GONE = 0, 1, 2, 3
local COMPLETE, RETRY, SNOOZE, RELEASE, DISCARD, CANCEL_JOB = 0, 1, 2, 3, 4, 5
local ENDS = { [COMPLETE] = COMPLETED, [DISCARD] = DISCARDED, [CANCEL_JOB] = CANCELLED }
local released, stopped, finished = {}, {}, {}

-- What is reported of a job: 0 available, 1 scheduled, 2 retryable, 3 running, then the ends.
local function reported(job)
  if job.state ~= WAITING then return job.state + 2 end
  if job.run_at <= now then return 0 end
  return band(job.marks, FAILED) ~= 0 and 2 or 1
end

local function collect(into, name, ...)
  local list = into[name]
  if not list then
    list = {}
    into[name] = list
  end
  for _, value in ipairs({ ... }) do list[#list + 1] = value end
end

-- The claim is over; the caller says what the job does instead.
local function end_claim(job)
  collect(released, job.session, job.id)
  if band(job.marks, CANCEL) ~= 0 then call('SREM', T .. 'cr:' .. job.session, job.id) end
  stopped[job.queue] = (stopped[job.queue] or 0) + 1
  job.ended, job.ended_no = job.session, job.fetch_no
  job.session, job.fetch_no = NOBODY, 0
  if job.group then end_group_run(job.group) end
end

-- The job, which neither waits nor runs any more, is over.
local function enter_finished(job, state)
  job.state, job.finished = state, now
  local name = STATES[state]
  if job.unique and has_key(job) then
    if job.hold == 0 then
      call('DEL', T .. 'u:' .. job.unique)
    elseif job.hold == math.huge then
      return call('SADD', T .. 'dk:' .. name, job.id)
    elseif now < job.hold then
      return call('ZADD', T .. 'dh:' .. name, job.hold, job.id)
    end
  end
  collect(finished, name, now, job.id)
end

local function add_error(job, text)
  if text == '' then return end
  local key = T .. 'e:' .. job.id
  if call('RPUSH', key, text) > 20 then call('LTRIM', key, -20, -1) end
  job.marks = bit.bor(job.marks, ERRORS)
end

-- Stores checkpoint `c` or output `o`.
local function keep_extra(job, field, text)
  call('HSET', T .. 'x:' .. job.id, field, text)
  job.marks = bit.bor(job.marks, EXTRAS)
end

-- One finish; its status and the job's reported state, or -1.
local function finish(raw, id, session, fetch_no, to, when, at, rescue, problem, output, checkpoint)
  if not raw then return GONE, -1 end
  local job = parse_job(id, raw)
  if job.session ~= session or job.fetch_no ~= fetch_no or job.state ~= RUNNING then
    local before = job.ended == session and job.ended_no == fetch_no and session ~= NOBODY
    return before and ALREADY or STALE, reported(job)
  end
  if rescue and to == RELEASE and band(job.marks, STARTED) ~= 0 then return STALE, 3 end
  end_claim(job)
  local cancel = band(job.marks, CANCEL) ~= 0
  job.marks = band(job.marks, bit.bnot(FAILED))
  if to == RETRY or to == DISCARD then job.marks = job.marks + FAILED end
  if problem then add_error(job, problem) end
  if checkpoint then keep_extra(job, 'c', checkpoint) end
  if to == RELEASE or to == SNOOZE then job.attempt = job.attempt - 1 end
  local state = ENDS[to] or cancel and CANCELLED
  if state then
    if output and to == COMPLETE then keep_extra(job, 'o', output) end
    enter_finished(job, state)
  else
    job.state = WAITING
    if to ~= RELEASE or when ~= 0 then job.run_at = resolve(when, at) end
    begin_waiting(job)
  end
  store_job(job)
  return DONE, reported(job)
end

-- Ends a session for good. One that holds nothing leaves only its name, for a day, so that it is
-- not opened again.
local function end_session(session)
  local key = T .. 's:' .. session
  call('HSET', key, 'open', 0)
  call('ZREM', T .. 'so', session)
  if call('EXISTS', T .. 'c:' .. session) == 1 then
    call('SADD', T .. 'se', session)
  else
    call('EXPIRE', key, 86400)
  end
end

-- Writes what the ended claims have in common.
local function settle_claims()
  for session, ids in pairs(released) do
    call_many('ZREM', T .. 'c:' .. session, ids)
    if call('EXISTS', T .. 'c:' .. session) == 0 and call('SREM', T .. 'se', session) == 1 then
      call('EXPIRE', T .. 's:' .. session, 86400)
    end
  end
  for queue, count in pairs(stopped) do
    if call('HINCRBY', T .. 'r', queue, -count) <= 0 then call('HDEL', T .. 'r', queue) end
  end
  for name, values in pairs(finished) do call_many('ZADD', T .. 'd:' .. name, values) end
  released, stopped, finished = {}, {}, {}
end

-- Finishes as they come in ARGV, up to the one named `last`; answers a number for each.
local function finish_all(from, last)
  local raws, answers, seen = {}, {}, {}
  for n = from, last do raws[n] = job_header(sub(ARGV[n], 1, 16)) or false end
  for n = from, last do
    local text = ARGV[n]
    local id, session, fetch_no, to, given, at, place = read('<c16c16dBBd', text)
    local problem, output, checkpoint
    if band(given, 8) ~= 0 then problem, place = read('<I4c0', text, place) end
    if band(given, 16) ~= 0 then output, place = read('<I4c0', text, place) end
    if band(given, 32) ~= 0 then checkpoint, place = read('<I4c0', text, place) end
    local raw = raws[n]
    if seen[id] then raw = job_header(id) end
    seen[id] = true
    local status, state = finish(raw, id, session, fetch_no, to, band(given, 3), at,
      band(given, 4) ~= 0, problem, output, checkpoint)
    answers[#answers + 1] = status * 16 + state + 1
  end
  settle_claims()
  settle_lines()
  return answers
end
