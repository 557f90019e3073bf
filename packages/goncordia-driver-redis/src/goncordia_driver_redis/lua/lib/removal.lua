-- Jobs leave for good. The functions are made when they are needed.
local function removal()
  local _, remove_from = index_upkeep()

  -- Looks at the keys that change when a job is forgotten, but for the list of finished ones.
  local function look(job)
    if job.unique then expect('STRLEN', T .. 'u:' .. job.unique) end
    job.chunk = chunk_of(job.id)
    if job.chunk then expect('STRLEN', T .. 'i:' .. job.chunk) end
    expect('HLEN', T .. 'in')
  end

  -- Forgets a job that was looked at, neither waits nor runs, and stands in no list of finished
  -- ones.
  local function forget(job)
    if job.unique then free_key(job) end
    call('DEL', job.key, T .. 'e:' .. job.id, T .. 'x:' .. job.id)
    if job.chunk then remove_from(job.chunk) end
  end

  -- Forgets finished jobs of a state whose keys are free, all of this list.
  local function forget_finished(state, ids)
    if #ids == 0 then return end
    local jobs = {}
    for _, id in ipairs(ids) do
      local job = read_job(id)
      if job then
        look(job)
        jobs[#jobs + 1] = job
      end
    end
    call('ZREM', T .. 'd:' .. state, unpack(ids))
    for _, job in ipairs(jobs) do forget(job) end
  end

  return look, forget, forget_finished
end
