"""JupyterHub, configured as book/jupyterhub.md says: a student signs in, runs lesson 2, and its player steps."""

import os
import re
import sys
from pathlib import Path

import pytest

from lab import FIND_FAULTS, IDLE, RUN_ALL_CELLS, SETTINGS
from needs import PACKAGES, needs
from web_server import START_TIMEOUT, free_ports, serving

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "book" / "jupyterhub.md"
CONFIG = re.search(r"```python\n(# jupyterhub_config.py\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
PASSWORD = re.search(r'user_password = "(.*)"', CONFIG)[1]


@pytest.fixture
def hub(tmp_path):
    """The address of a hub with the configuration of the page, but for its ports; any user may run it, also root."""
    needs("chromium", "playwright")
    needs("jupyterhub", "jupyterlab")
    needs("configurable-http-proxy")
    (tmp_path / "jupyterhub_config.py").write_text(CONFIG, encoding="utf-8")
    public, internal, proxy = free_ports(3)
    ports = [
        f"--JupyterHub.bind_url=http://127.0.0.1:{public}/course/",
        f"--JupyterHub.hub_port={internal}",
        f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{proxy}",
    ]
    settings = tmp_path / "settings"
    for name, content in SETTINGS.items():
        file = settings / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(content, encoding="utf-8")
    arguments = ["--allow-root", "--LabApp.expose_app_in_browser=True", f"--LabApp.user_settings_dir={settings}"]
    programs = os.pathsep.join([str(Path(sys.executable).parent), str(PACKAGES / ".bin"), os.environ["PATH"]])
    command = [sys.executable, "-m", "jupyterhub", *ports, *(f"--Spawner.args={one}" for one in arguments)]
    address = f"127.0.0.1:{public}"
    with serving(command, f"http://{address}/course/hub/health", os.environ | {"PATH": programs}, tmp_path):
        yield address


def test_a_student_signs_in_and_steps_through_lesson_2(hub, watched):
    page = watched(width=1400, height=1000, servers=(hub,), expects_errors=None)
    page.goto(f"http://{hub}/course/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.locator("#jp-main-statusbar").get_by_text(IDLE).wait_for(timeout=START_TIMEOUT * 1000)
    assert page.url.startswith(f"http://{hub}/course/user/ada/lab/tree/minigrad-lessons/02_the_chain_rule.ipynb")

    page.evaluate(RUN_ALL_CELLS)
    page.wait_for_function("() => window.ended !== null", timeout=START_TIMEOUT * 1000)
    assert page.evaluate(FIND_FAULTS) == []

    player = page.locator(".jp-OutputArea-output", has=page.locator(".count")).first
    player.scroll_into_view_if_needed()
    player.locator(".count", has_text="6 / 19").wait_for()
    player.get_by_role("button", name="Step forward").click()
    player.locator(".count", has_text="7 / 19").wait_for()
    player.locator(".say", has_text="The backward pass begins at y").wait_for()
    player.get_by_label("y = r − g, operation, value 79.0, gradient 1.0").wait_for()
