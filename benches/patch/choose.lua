-- Each thread has conversations of its own and changes the agent of one after the other, so that no
-- request finds its work done.

local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

local function words(name)
  local all = {}
  for word in os.getenv(name):gmatch("%S+") do
    all[#all + 1] = word
  end
  return all
end

function init()
  mine = {}
  for index, id in ipairs(words("CONVERSATIONS")) do
    if index % 2 == number then
      mine[#mine + 1] = id
    end
  end
  agents = words("AGENTS")
  headers = {
    ["Authorization"] = "Bearer " .. os.getenv("TOKEN"),
    ["Content-Type"] = "application/json",
  }
  count = 0
end

function request()
  local conversation = mine[count % #mine + 1]
  local agent = agents[math.floor(count / #mine) % 2 + 1]
  count = count + 1
  return wrk.format("PATCH", "/api/convos/" .. conversation, headers, '{"agent_id":"' .. agent .. '"}')
end

function done(summary)
  local errors = summary.errors
  if errors.status + errors.connect + errors.read + errors.write + errors.timeout > 0 then
    os.exit(1)
  end
end
