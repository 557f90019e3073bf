-- Jobs leave for good. The functions are made when they are needed.
local function removal()
  local _, remove_id = index_upkeep()

  -- Forgets a job that neither waits nor runs, and stands in no list of finished ones.
  local function forget(job)
    if job.unique then free_key(job) end
    call('DEL', job.key, T .. 'e:' .. job.id, T .. 'x:' .. job.id)
    remove_id(job.id)
  end

  -- Forgets finished jobs of a state whose keys are free, all of this list.
  local function forget_finished(state, ids)
    if #ids == 0 then return end
    call('ZREM', T .. 'd:' .. state, unpack(ids))
    for _, id in ipairs(ids) do
      local job = read_job(id)
      if job then forget(job) end
    end
  end

  return forget, forget_finished
end
