-- Tells the listeners, once for a script and queue, and only when somebody may be asleep.
--
-- `told` holds the queues that were called out since a fetch last found too little in them. Who
-- hears a call fetches, and takes the queue out of `told` again if that leaves it idle; so nobody
-- sleeps while a queue is in `told`, and busy pools are not told again and again.
local due_queues, later_queues, told, cancels = {}, {}, {}, {}

local function is_told(queue)
  if told[queue] == nil then told[queue] = ask('SISMEMBER', T .. 'told', queue) end
  return told[queue] == 1
end

-- A job of the queue may be claimed at that time. `first`: as the first of its line.
local function wake(queue, run_at, first)
  if run_at <= now then
    due_queues[queue] = true
  elseif first and (later_queues[queue] == nil or run_at < later_queues[queue]) then
    later_queues[queue] = run_at
  end
end

local function publish(what, rest)
  call('SPUBLISH', T .. 'wake', what .. rest)
end

-- The last thing that a script does.
local function tell()
  for queue in pairs(due_queues) do
    if not is_told(queue) then
      call('SADD', T .. 'told', queue)
      publish('j', write('<d', 0) .. queue)
    end
  end
  for queue, run_at in pairs(later_queues) do
    if not due_queues[queue] and not is_told(queue) then
      publish('j', write('<d', run_at - now) .. queue)
    end
  end
  for from = 1, #cancels, 100 do
    publish('c', table.concat(cancels, '', from, math.min(from + 99, #cancels)))
  end
end
