"""What the hub says of a repository, by its own library: login, endpoint and proxies are those the user has set there.

huggingface_hub is asked for facts and addresses only. Its downloader cannot be paused within a file and hands large
files to a second library that keeps no half of one, so that going on would begin anew: see `transfer`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import SpecularError
from engine.files.wording import shown
from engine.library.remote import RemoteFile, RemoteModel, chosen_files

SECONDS = 20.0  # that an answer may take
STILL_THERE = "models on this computer work as ever"


class HubError(SpecularError):
    """The hub cannot be reached, does not know the model, or will not give it. Nothing here has changed."""


def endpoint() -> str:
    """The hub's address: HF_ENDPOINT where it is set, as in the hub's own tools."""
    from huggingface_hub.constants import ENDPOINT

    return os.environ.get("HF_ENDPOINT", ENDPOINT).rstrip("/")


def find_remote(repo: str, file: str | None = None, revision: str | None = None) -> RemoteModel:
    """The model of a repository as it is now: OWNER/NAME.

    file: a GGUF in it, where it holds several. revision: a branch, tag or commit. Raises HubError, and ModelFileError
    where the repository holds nothing that can be read.
    """
    from huggingface_hub import HfApi

    with told(repo):
        info = HfApi(endpoint=endpoint()).model_info(repo, revision=revision, files_metadata=True, timeout=SECONDS)
    files = [
        RemoteFile(
            sibling.rfilename,
            int((sibling.lfs.size if sibling.lfs else sibling.size) or 0),
            sibling.lfs.sha256 if sibling.lfs else None,
            None if sibling.lfs else sibling.blob_id,
        )
        for sibling in info.siblings or ()
    ]
    if not info.sha:
        raise HubError(f"The hub does not say which version of {repo} it has.")
    return RemoteModel(repo, info.sha, chosen_files(repo, files, file), file)


def address(model: RemoteModel, file: RemoteFile) -> str:
    """Where the file of the model's commit is."""
    from huggingface_hub import hf_hub_url

    return str(hf_hub_url(model.repo, file.name, revision=model.commit, endpoint=endpoint()))


@contextmanager
def told(repo: str) -> Iterator[None]:
    """Turn what goes wrong with the hub into a HubError of one sentence."""
    from huggingface_hub import errors

    try:
        yield
    except errors.HFValidationError as error:
        raise HubError(f"{shown(repo)} is no name of a repository: it is OWNER/NAME.") from error
    except errors.GatedRepoError as error:
        page = f"{endpoint()}/{repo}"
        raise HubError(f"{repo} is given only to those who accept its terms: do so at {page} and log in.") from error
    except errors.RepositoryNotFoundError as error:
        private = "or it is private: hf auth login logs in"
        raise HubError(f"The hub knows no model called {shown(repo)}, {private}.") from error
    except (errors.RevisionNotFoundError, errors.EntryNotFoundError) as error:
        raise HubError(f"{repo} has no such version or file any more.") from error
    except errors.OfflineModeIsEnabled as error:
        raise HubError(f"HF_HUB_OFFLINE forbids asking the hub; {STILL_THERE}.") from error
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", None)
        raise HubError(f"The hub refused ({status or 'no status'}); {STILL_THERE}.") from error
    except Exception as error:
        if not unreachable(error):
            raise
        raise HubError(f"The hub cannot be reached ({cause_of(error)}); {STILL_THERE}.") from error


def unreachable(error: Exception) -> bool:
    """Whether an exception is the network's: of the system, or of whichever HTTP library the hub's one uses."""
    return isinstance(error, OSError) or type(error).__module__.split(".")[0] in ("httpx", "httpx2", "httpcore")


def cause_of(error: Exception) -> str:
    """The network's reason on one line."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:120].rstrip(" .")
