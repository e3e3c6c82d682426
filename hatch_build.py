"""What the build of the wheel does beside copying: it makes the player's module, so that nobody needs node."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlayerHook(BuildHookInterface[Any]):
    """Puts ``minigrad_viz/static/player.js`` into the wheel. An editable installation makes it when it is asked for."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        viz = Path(self.root, "viz")
        frontend = runpy.run_path(str(viz / "minigrad_viz" / "bundle.py"))
        self._folder = tempfile.TemporaryDirectory()
        player = Path(self._folder.name, "player.js")
        player.write_text(frontend["bundle"](viz / "frontend" / "src", *frontend["PLAYER"]), encoding="utf-8")
        build_data["force_include"][str(player)] = "minigrad_viz/static/player.js"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()
