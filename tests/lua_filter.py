"""The shipped submit filter in a Lua of its own, with files and clocks as a test says.

Slurm brings the library of Lua that its plugin uses; there need be no interpreter.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import Any

import pytest

from headway.inputs.shipped import shipped

NAMES = ("lua5.1", "lua5.4", "lua5.3")
HEARTBEAT = "/run/headway/heartbeat"
#: What slurmctld gives the script, and a system whose files and clocks are a table.
_AROUND = """
slurm = { SUCCESS = 0, jobs = {}, log_info = function(form, ...) LOGGED = string.format(form, ...) end }
slurm.log_error = slurm.log_info
slurm.log_user = function(form, ...) ANSWER = string.format(form, ...) end
FILES, NOW, ANSWER = {}, 0, ""
io.open = function(path, mode)
   if mode == "w" then
      if FULL then return nil end
      return {
         write = function(file, text) FILES[path] = text return file end, close = function() return true end,
      }
   end
   local text = FILES[path]
   if text == nil then return nil end
   return { read = function(_, most) return string.sub(text, 1, most) end, close = function() end }
end
os.rename = function(old, new) FILES[new], FILES[old] = FILES[old], nil return true end
os.time = function() return NOW end
"""


def _library() -> ctypes.CDLL:
    for name in NAMES:
        if (found := ctypes.util.find_library(name)) is not None:
            return ctypes.CDLL(found)
    pytest.skip("needs a library of Lua, as Debian's slurm-wlm-basic-plugins brings it")


class LuaFilter:
    """The script as slurmctld has loaded it at second ``loaded`` of the machine's uptime; None: at its start,
    which was at ``started``."""

    def __init__(
        self, *, started: int = 1000, loaded: int | None = None, changed: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self._lua = _library()
        self._lua.luaL_newstate.restype = ctypes.c_void_p
        self._lua.lua_tolstring.restype = ctypes.c_char_p
        self._state = ctypes.c_void_p(self._lua.luaL_newstate())
        self._lua.luaL_openlibs(self._state)
        self.do(_AROUND)
        self.file("/proc/sys/kernel/random/boot_id", "this-boot\n")
        # The name of the process may hold anything.
        self.file("/proc/self/stat", f"77 (slurmctld ) x) S {' '.join(['0'] * 18)} {started * 100} 0 0")
        self.clock(started if loaded is None else loaded, 1_000_000)
        text = shipped("slurm/job_submit.lua").read_text()
        for old, new in changed:
            assert old in text
            text = text.replace(old, new)
        self.do(text)

    def do(self, code: str) -> str:
        """Run Lua; what it returns, as text."""
        failed = self._lua.luaL_loadstring(self._state, code.encode())
        call = getattr(self._lua, "lua_pcall", None)
        if not failed and call is not None:
            failed = call(self._state, 0, 1, 0)
        elif not failed:
            failed = self._lua.lua_pcallk(self._state, 0, 1, 0, ctypes.c_void_p(0), None)
        said = (self._lua.lua_tolstring(self._state, -1, None) or b"").decode()
        self._lua.lua_settop(self._state, 0)
        assert not failed, said
        return said

    def close(self) -> None:
        self._lua.lua_close(self._state)

    # -- the system ------------------------------------------------------------------------------

    def file(self, path: str, text: str | None) -> None:
        """Put a file there; None: take it away."""
        self.do(f"FILES[{_quoted(path)}] = {'nil' if text is None else _quoted(text)}")

    def clock(self, uptime: float, wall: int) -> None:
        self.file("/proc/uptime", f"{uptime:.2f} 99.00\n")
        self.do(f"NOW = {wall}")

    def beat(self, up: int, at: int, boot: str = "this-boot") -> None:
        self.file(HEARTBEAT, f"headway drives boot={boot} up={up} at={at} since=0\n")

    # -- what users do ---------------------------------------------------------------------------

    def holds(self) -> bool:
        """A job is submitted; whether it enters held for headway."""
        said = self.do(
            'local job = { partition = "batch", max_nodes = 1 } slurm_job_submit(job, {}, 1000) '
            'return tostring(job.priority) .. (job.admin_comment or "")'
        )
        assert said in ("0headway:new", "nil"), said
        return said != "nil"

    def ask(self, question: str, user: int = 0) -> str:
        """What a daemon is answered."""
        return self.do(
            f"local code = slurm_job_submit({{ comment = {_quoted(question)} }}, {{}}, {user}) "
            'assert(code ~= 0) local said = ANSWER ANSWER = "" return said'
        )

    def modify(self, job: dict[str, Any], change: dict[str, Any], user: int = 1000) -> dict[str, str]:
        """The job's user, or another, changes it; what becomes of the change."""
        record = {"partition": "batch", "user_id": 1000, "job_state": 0, "job_id": 7, **job}
        said = self.do(
            f"local change = {_table(change)} "
            f"local code = slurm_job_modify(change, {_table(record)}, {{}}, {user}) "
            'local said = "code=" .. code '
            'for key, value in pairs(change) do said = said .. "\\n" .. key .. "=" .. tostring(value) end '
            "return said"
        )
        return dict(line.split("=", 1) for line in said.splitlines())


def _quoted(text: str) -> str:
    return '"' + "".join(f"\\{byte:03d}" for byte in text.encode()) + '"'


def _table(values: dict[str, Any]) -> str:
    inside = (f"{key} = {_quoted(v) if isinstance(v, str) else v}" for key, v in values.items())
    return "{ " + ", ".join(inside) + " }"
