-- A claim ends, and what follows of it. What many jobs have in common is written once, by
-- `settle_claims`.
local released, stopped, finished = {}, {}, {}
local STATES = { [COMPLETED] = 'completed', [DISCARDED] = 'discarded', [CANCELLED] = 'cancelled' }
local ENDS = { [COMPLETE] = COMPLETED, [DISCARD] = DISCARDED, [CANCEL] = CANCELLED }

-- What is reported of a job: 0 available, 1 scheduled, 2 retryable, 3 running, then the ends.
local function reported(job)
  if job.state ~= WAITING then return job.state + 2 end
  if job.run_at <= now then return 0 end
  return band(job.marks, FAILED) ~= 0 and 2 or 1
end

-- The session holds the job of this id no more.
local function let_go(session, id)
  local ids = released[session]
  if not ids then
    released[session] = { id }
  else
    ids[#ids + 1] = id
  end
end

-- The same for a job whose string is gone, as after an eviction; and the look at what that changes.
local function drop(session, id)
  let_go(session, id)
  call('SREM', T .. 'cr:' .. session, id)
end

local function look_at_drop(session)
  expect('ZCARD', T .. 'c:' .. session)
  expect('SCARD', T .. 'cr:' .. session)
end

-- Lists a job that is over: with those that hold their unique keys still, or with the others.
local function list_finished(job)
  local name = STATES[job.state]
  if job.unique and job.hold ~= 0 and has_key(job) then
    if job.hold == math.huge then return call('SADD', T .. 'dk:' .. name, job.id) end
    if now < job.hold then return call('ZADD', T .. 'dh:' .. name, job.hold, job.id) end
  end
  local values = finished[name]
  if not values then
    finished[name] = { job.finished, job.id }
  else
    local count = #values
    values[count + 1], values[count + 2] = job.finished, job.id
  end
end

-- The job, which neither waits nor runs any more, is over.
local function enter_finished(job, state)
  job.state, job.finished = state, now
  if job.unique and job.hold == 0 then free_key(job) end
  list_finished(job)
end

local function add_error(job, text)
  local key = T .. 'e:' .. job.id
  if call('RPUSH', key, text) > 20 then call('LTRIM', key, -20, -1) end
  job.marks = bit.bor(job.marks, HAS_ERRORS)
end

-- Stores checkpoint `c` or output `o`.
local function keep_extra(job, field, text)
  call('HSET', T .. 'x:' .. job.id, field, text)
  job.marks = bit.bor(job.marks, HAS_EXTRAS)
end

-- Looks at the keys that change when a job enters or leaves a finished state.
local function look_at_finished(job, name)
  expect('ZCARD', T .. 'd:' .. name)
  if job.unique then
    expect('STRLEN', T .. 'u:' .. job.unique)
    if job.hold ~= 0 then
      expect('SCARD', T .. 'dk:' .. name)
      expect('ZCARD', T .. 'dh:' .. name)
    end
  end
end

-- Looks at the keys that change when the claim of a running job ends; `given` as in a finish.
local function look_at_end(job, to, given)
  local cancel = band(job.marks, CANCEL_ASKED) ~= 0
  local state = ENDS[to] or cancel and CANCELLED
  expect('ZCARD', T .. 'c:' .. job.session)
  if cancel then expect('SCARD', T .. 'cr:' .. job.session) end
  if band(given, ERROR) ~= 0 then expect('LLEN', T .. 'e:' .. job.id) end
  if band(given, OUTPUT + CHECKPOINT) ~= 0 then expect('HLEN', T .. 'x:' .. job.id) end
  if job.group then (groups or make_groups()).look_at_runs(job.group) end
  if state then look_at_finished(job, STATES[state]) else look_at_waiting(job) end
end

-- The claim of a running job ends.
local function end_claim(job, to, when, number, problem, output, checkpoint)
  let_go(job.session, job.id)
  stopped[job.queue] = (stopped[job.queue] or 0) + 1
  local cancel = band(job.marks, CANCEL_ASKED) ~= 0
  if cancel then call('SREM', T .. 'cr:' .. job.session, job.id) end
  job.ended, job.ended_no, job.session, job.fetch_no = job.session, job.fetch_no, NOBODY, 0
  if job.group then (groups or make_groups()).end_run(job.group) end
  if band(job.marks, FAILED) ~= 0 then job.marks = job.marks - FAILED end
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
    if to ~= RELEASE or when ~= NOW then job.run_at = resolve(when, number) end
    begin_waiting(job)
  end
  store_job(job)
end

-- One finish of a job, if there is such a job; gives its status and the job's reported state in one
-- number.
local function finish(job, text)
  local id, session, fetch_no, to, given, number, at = read('<c16c16dBBd', text)
  if not job then
    if call('ZSCORE', T .. 'c:' .. session, id) then drop(session, id) end
    return GONE * 16
  end
  if job.state ~= RUNNING or job.session ~= session or job.fetch_no ~= fetch_no then
    local before = job.ended == session and job.ended_no == fetch_no and session ~= NOBODY
    return (before and ALREADY or STALE) * 16 + reported(job) + 1
  end
  local problem, output, checkpoint
  if given > 2 then
    if band(given, RESCUE) ~= 0 and to == RELEASE and band(job.marks, STARTED) ~= 0 then
      return STALE * 16 + reported(job) + 1
    end
    if band(given, ERROR) ~= 0 then problem, at = read('<I4c0', text, at) end
    if band(given, OUTPUT) ~= 0 then output, at = read('<I4c0', text, at) end
    if band(given, CHECKPOINT) ~= 0 then checkpoint, at = read('<I4c0', text, at) end
  end
  end_claim(job, to, given % 4, number, problem, output, checkpoint)
  return DONE * 16 + reported(job) + 1
end

-- Writes what the ended claims have in common. An ended session that holds nothing any more leaves
-- only its name, for a day, so that it is not opened again.
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
