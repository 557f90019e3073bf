-- Writes jobs' strings.

-- The fixed part of a full header.
local function head_of(job)
  return write(HEAD, job.flags, job.size, job.created, job.run_at, job.state, job.marks,
    job.attempt, job.max, job.claimed, job.finished, job.session, job.fetch_no, job.ended,
    job.ended_no)
end

-- Stores what has changed in the fixed part; a fresh header becomes a full one.
local function store_job(job)
  if band(job.flags, FULL) ~= 0 then
    call('SETRANGE', job.key, 0, head_of(job))
    return
  end
  local raw = call('GET', job.key)
  local common, rest = sub(raw, job.common, job.size), sub(raw, job.size + 1)
  job.flags = band(job.flags, GROUPED + UNIQUE + TAIL) + FULL
  job.size = 95 + #common
  call('SET', job.key, head_of(job) .. '\0\0' .. common .. rest)
end
