"""The workflows that publish the book with the live lessons: they run targets of the Makefile, and are documented."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
SAMPLES = ROOT / "examples" / "publish"
TEACHING = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def github():
    # YAML 1.1 reads the key `on` as True.
    return yaml.safe_load((SAMPLES / "github-pages.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def gitlab():
    return yaml.safe_load((SAMPLES / "gitlab-pages.yml").read_text(encoding="utf-8"))["pages"]


def test_make_site_builds_the_book_with_links_to_the_live_lessons_below_it():
    assert re.search(r"^site: book lite  ## ", MAKEFILE, flags=re.MULTILINE)
    assert re.search(r"^site: export MINIGRAD_LITE := lite/$", MAKEFILE, flags=re.MULTILINE)
    recipe = MAKEFILE.partition("\nsite: book lite")[2].partition("\n\n")[0]
    assert "cp -r $(BOOK) site && cp -r book/_build/lite site/lite" in recipe
    assert "/site/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_the_github_workflow_publishes_what_make_site_builds(github):
    assert github[True]["push"]["branches"] == ["main"]
    assert github["permissions"] == {"contents": "read", "pages": "write", "id-token": "write"}
    (job,) = github["jobs"].values()
    steps = job["steps"]
    assert [step["run"] for step in steps if "run" in step] == ["make site"]
    used = {step["uses"].partition("@")[0]: step for step in steps if "uses" in step}
    names = ["checkout", "setup-python", "setup-node", "upload-pages-artifact", "deploy-pages"]
    assert [*used] == [f"actions/{name}" for name in names]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in used.values())
    assert used["actions/upload-pages-artifact"]["with"] == {"path": "site"}
    assert job["environment"]["url"] == f"${{{{ steps.{used['actions/deploy-pages']['id']}.outputs.page_url }}}}"
    assert is_supported(used["actions/setup-python"]["with"]["python-version"])


def is_supported(python):
    return f'"Programming Language :: Python :: {python}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_gitlab_job_publishes_what_make_site_builds(gitlab):
    assert gitlab["script"] == ["make site", "mv site public"]
    assert gitlab["artifacts"] == {"paths": ["public"]}
    assert gitlab["rules"] == [{"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}]
    image, python = gitlab["image"].split(":")
    assert image == "python"
    assert is_supported(python)
    assert {"make", "nodejs", "npm"} <= set(gitlab["before_script"][1].split())


def test_both_take_numpy_from_the_release_of_the_pyodide_that_is_built(github, gitlab):
    package = json.loads((ROOT / "viz" / "frontend" / "package.json").read_text(encoding="utf-8"))
    version = package["devDependencies"]["pyodide"]
    address = f"https://github.com/pyodide/pyodide/releases/download/{version}/pyodide-{version}.tar.bz2"
    (job,) = github["jobs"].values()
    assert [step["env"]["PYODIDE"] for step in job["steps"] if "env" in step] == [address]
    assert gitlab["variables"]["PYODIDE"] == address


def test_the_teachers_page_names_files_that_exist():
    links = re.findall(r"\]\(\.\./(examples/publish/[^)]+)\)", TEACHING)
    assert sorted(links) == sorted(f"examples/publish/{path.name}" for path in SAMPLES.iterdir())
    for name, target in {
        "github-pages.yml": ".github/workflows/publish.yml",
        "gitlab-pages.yml": ".gitlab-ci.yml",
    }.items():
        assert f"Copy this file to {target};" in (SAMPLES / name).read_text(encoding="utf-8")
        assert f"`{target}`" in TEACHING
    for path in re.findall(r"`(notebooks/[^`]+\.ipynb)`", TEACHING):
        assert (ROOT / path).is_file()
