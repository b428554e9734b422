"""Public traces by name: downloaded into a cache and checked against a known SHA-256."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from traces.errors import BadInput, nearest
from traces.writing import write_bytes

TIMEOUT_S = 30.0
AZURE = "https://raw.githubusercontent.com/Azure/AzurePublicDataset/master/data/"


@dataclass(frozen=True)
class PublishedFile:
    """The address of a published trace, and the SHA-256 of the file."""

    address: str
    sha256: str

    @property
    def file_name(self) -> str:
        return self.address.rpartition("/")[2]


MOONCAKE = "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/traces/"
VIDUR = "https://raw.githubusercontent.com/microsoft/vidur/main/data/processed_traces/"

# Azure: the LLM inference traces of 2023, Patel et al., ISCA 2024; licence CC-BY-4.0.
# Mooncake: Qin et al., FAST 2025; licence Apache-2.0. Vidur: lengths of arXiv summaries; licence MIT.
SOURCES = {
    "azure-2023-conv": PublishedFile(
        AZURE + "AzureLLMInferenceTrace_conv.csv",
        "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
    ),
    "azure-2023-code": PublishedFile(
        AZURE + "AzureLLMInferenceTrace_code.csv",
        "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6",
    ),
    "mooncake-conversation": PublishedFile(
        MOONCAKE + "conversation_trace.jsonl",
        "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df",
    ),
    "mooncake-synthetic": PublishedFile(
        MOONCAKE + "synthetic_trace.jsonl",
        "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131",
    ),
    "vidur-arxiv": PublishedFile(
        VIDUR + "arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv",
        "9d3580538d915ca75e4aaaa54590b42dbb17abc6d74c8913310cf07c232adcdc",
    ),
}
NAMES = tuple(SOURCES)


def fetch(name: str, cache: Path | None = None) -> Path:
    """The path of the trace `name` in the cache, downloaded unless a copy with the right digest is there.

    The cache is `cache`, else $SLOTSTEP_CACHE, else slotstep in the XDG cache folder (~/.cache). Raises BadInput for
    an unknown name, a failed download (with the path at which to put the file by hand), a file of another digest, and
    a cache that cannot be written; no file is left behind then.
    """
    if name not in SOURCES:
        raise BadInput(f"{name}: unknown trace; did you mean {nearest(name, SOURCES)}?")
    source = SOURCES[name]
    target = (cache_folder() if cache is None else Path(cache)) / source.file_name
    try:
        if target.is_file() and _sha256(target.read_bytes()) == source.sha256:
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{target}: the cache cannot be used: {error.strerror}") from None
    content = _download(name, source, target)
    if _sha256(content) != source.sha256:
        raise BadInput(f"{source.address}: SHA-256 is {_sha256(content)}; expected {source.sha256}")
    write_bytes(target, content)
    return target


def cache_folder() -> Path:
    """$SLOTSTEP_CACHE, else slotstep in $XDG_CACHE_HOME, else ~/.cache/slotstep."""
    if own := os.environ.get("SLOTSTEP_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slotstep"


def _download(name: str, source: PublishedFile, target: Path) -> bytes:
    try:
        with urllib.request.urlopen(source.address, timeout=TIMEOUT_S) as response:
            content: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise BadInput(
            f"{name}: cannot download {source.address}: {str(reason) or type(reason).__name__}; "
            f"put the file at {target} by hand"
        ) from None
    return content


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
