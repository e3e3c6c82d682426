"""The repository's address on the home page: from a setting, a CI service, or the clone's remote."""

import subprocess

import pytest
import repository

from cases import merge_cases

GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "ada/engine"}
GITLAB = {"CI_PROJECT_URL": "https://gitlab.school.org/maths/ada/engine"}


@merge_cases
@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://host.org/ada/engine.git", "https://host.org/ada/engine"),
        ("http://host.org:8080/ada/engine/", "http://host.org:8080/ada/engine"),
        ("https://token:secret@host.org/ada/engine.git", "https://host.org/ada/engine"),
        ("git@host.org:ada/engine.git", "https://host.org/ada/engine"),
        ("host.org:group/ada/engine", "https://host.org/group/ada/engine"),
        ("ssh://git@host.org:2222/ada/engine.git", "https://host.org/ada/engine"),
        ("/srv/git/engine.git", ""),
        ("../engine", ""),
        ("./a.b:c/engine", ""),
        ("C:/git/engine", ""),
        ("C:\\git\\engine", ""),
        ("file:///srv/git/engine.git", ""),
        ("git@alias:ada/engine.git", ""),
        ("http://127.0.0.1:3000/ada/engine.git", ""),
        ("http://localhost/ada/engine.git", ""),
        ("https://host.org", ""),
        ("javascript:alert(1)", ""),
        ("", ""),
    ],
)
def test_an_address_of_a_host_becomes_a_url_for_browsers(address, url):
    assert repository.web_address(address) == url


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)


def test_the_setting_counts_before_the_service_and_the_service_before_the_remote(tmp_path):
    git(tmp_path, "init")
    assert repository.find_repository({}, tmp_path) == ""
    git(tmp_path, "remote", "add", "origin", "git@host.org:ada/clone.git")
    find = repository.find_repository
    assert find({}, tmp_path) == "https://host.org/ada/clone"
    assert find(GITLAB, tmp_path) == "https://gitlab.school.org/maths/ada/engine"
    assert find(GITLAB | GITHUB, tmp_path) == "https://github.com/ada/engine"
    assert find(GITHUB | {"REPOSITORY": "https://host.org/ada/mine"}, tmp_path) == "https://host.org/ada/mine"
    assert find(GITHUB | {"REPOSITORY": ""}, tmp_path) == ""
    git(tmp_path, "remote", "set-url", "origin", str(tmp_path))
    assert find({}, tmp_path) == ""


def test_a_setting_that_is_no_address_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^REPOSITORY is 'engine'; expected an address such as https://host\.org/"):
        repository.find_repository({"REPOSITORY": "engine"}, tmp_path)


def test_outside_a_clone_and_without_git_there_is_no_address(tmp_path, monkeypatch):
    assert repository.find_repository({}, tmp_path) == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repository.find_repository({}, tmp_path) == ""
