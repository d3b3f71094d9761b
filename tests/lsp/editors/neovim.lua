-- Run by test_editors.py: nvim --headless -u NONE -i NONE -n -S neovim.lua FILE
-- Opens FILE, attaches the server named in $SERVER (a JSON list), and writes what it saw to $OUT.

local seen = {}

local function wait(condition)
  if not vim.wait(30000, condition, 10) then
    error('timeout', 2)
  end
end

local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
end

local function run()
  vim.o.hidden = true
  vim.o.swapfile = false
  local buffer = vim.api.nvim_get_current_buf()
  local ready = false
  local config = {
    name = 'apply-server',
    cmd = vim.fn.json_decode(vim.env.SERVER),
    root_dir = vim.fn.getcwd(),
    on_init = function() ready = true end,
  }
  local id
  if vim.lsp.start then
    id = vim.lsp.start(config, { bufnr = buffer })
  else
    id = vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(buffer, id)
  end
  wait(function() return ready end)
  local client = vim.lsp.get_client_by_id(id)
  seen.encoding = client.offset_encoding

  local function request(method, params)
    local done, failure, result = false, nil, nil
    client.request(method, params, function(err, answer)
      failure, result, done = err, answer, true
    end, buffer)
    wait(function() return done end)
    return result, failure
  end

  local function apply(version)
    local argument = {
      textDocument = { uri = vim.uri_from_bufnr(buffer), version = version },
      snippet = vim.env.SNIPPET,
    }
    return request('workspace/executeCommand', { command = 'applyEdit.apply', arguments = { argument } })
  end

  seen.before = text(buffer)
  -- The cursor is put on the last line, whose text the edit leaves alone.
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(buffer), 0 })
  local result, failure = apply(vim.lsp.util.buf_versions[buffer])
  seen.result, seen.failure = result, failure
  seen.after = text(buffer)
  seen.cursor = vim.api.nvim_get_current_line()
  seen.modified = vim.bo.modified
  vim.cmd('silent undo')
  seen.undone = text(buffer)
  local _, stale = apply(9999)
  seen.stale = stale and stale.data and stale.data.code
  -- The server has followed the undo: the same edit gives the same text again.
  vim.wait(400)
  apply(vim.lsp.util.buf_versions[buffer])
  seen.again = text(buffer)
  client.stop()
  wait(function() return vim.lsp.get_client_by_id(id) == nil end)
end

local ok, failure = pcall(run)
seen.error = not ok and tostring(failure) or nil
vim.fn.writefile({ vim.fn.json_encode(seen) }, vim.env.OUT)
vim.cmd('qall!')
