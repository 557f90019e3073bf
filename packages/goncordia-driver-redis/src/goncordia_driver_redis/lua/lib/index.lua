-- The index of all ids: what lists and counts go by, at some 17 bytes an id.
--
-- `i` has the starts of chunks, by their bytes; chunk `i:<start>` is the ids from that start to the
-- next, one behind the other, in no order, and may hold ids that are gone: `in` counts them.
local function chunk_of(id)
  return call('ZREVRANGEBYLEX', T .. 'i', '[' .. id, '-', 'LIMIT', 0, 1)[1]
end

-- What few calls need, made when it is needed: cutting chunks, and removing ids.
local function index_upkeep()
  -- The living ids of a string, each once, sorted by their bytes: the server compares them, for
  -- Lua's own `<` minds the locale.
  local function living_ids(text)
    local scratch, members = T .. 'i~', {}
    for at = 1, #text, 16 do
      local id = sub(text, at, at + 15)
      if call('EXISTS', T .. 'j:' .. id) == 1 then
        members[#members + 1] = 0
        members[#members + 1] = id
      end
    end
    call('DEL', scratch)
    call_many('ZADD', scratch, members)
    local ids = call('ZRANGE', scratch, 0, -1)
    call('DEL', scratch)
    return ids
  end

  -- Cuts a chunk that has grown too long: in two, or where ids come in order, behind its end.
  local function split(start)
    local text = call('GET', T .. 'i:' .. start)
    local ids = living_ids(text)
    call('HDEL', T .. 'in', start)
    local step = table.concat(ids) == text and 512 or 256
    for from = 1, math.max(#ids, 1), step do
      local first = from == 1 and start or ids[from]
      call('ZADD', T .. 'i', 0, first)
      call('SET', T .. 'i:' .. first, table.concat(ids, '', from, math.min(from + step - 1, #ids)))
    end
  end

  -- The job of this id is gone.
  local function remove(id)
    local start = chunk_of(id)
    if not start then return end
    local key = T .. 'i:' .. start
    local all, gone = call('STRLEN', key) / 16, call('HINCRBY', T .. 'in', start, 1)
    if gone < all and gone * 4 < all * 3 then return end
    local kept = table.concat(living_ids(call('GET', key)))
    call('HDEL', T .. 'in', start)
    if kept == '' then
      call('DEL', key)
      call('ZREM', T .. 'i', start)
    else
      call('SET', key, kept)
    end
  end

  return split, remove
end

local function index_append(start, ids)
  if start == NOBODY then call('ZADD', T .. 'i', 0, start) end
  if call('APPEND', T .. 'i:' .. start, ids) > 8192 then index_upkeep()(start) end
end

-- Takes ids in, all between the lowest and the highest, whose chunk is known. Each chunk gets all
-- of its own before it may be cut: an id that was there before must not be found alive in it and
-- then come a second time.
local function index_add(ids, lowest, highest, start)
  if lowest == highest or start == chunk_of(highest) then
    return index_append(start or NOBODY, table.concat(ids))
  end
  local chunks = {}
  for _, id in ipairs(ids) do
    local own = chunk_of(id) or NOBODY
    chunks[own] = (chunks[own] or '') .. id
  end
  for own, some in pairs(chunks) do index_append(own, some) end
end
