"""Fetching a public trace, against a server of our own on this machine: the public address is never asked."""

import gzip
import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from traces import BadInput
from traces.reading import fetch

CONTENT = b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch):
    """A server that gives `server.content` under any path, and remembers what was asked."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            if self.server.content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(self.server.announced or len(self.server.content)))
            self.end_headers()
            self.wfile.write(self.server.content)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as running:
        running.content, running.announced, running.asked = CONTENT, None, []
        running.address = f"http://127.0.0.1:{running.server_port}/data/conv.csv"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setitem(fetch.SOURCES, "azure-2023-conv", fetch.PublishedFile(running.address, DIGEST))
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def offline(monkeypatch):
    """The address of a port nobody listens on."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}/conv.csv"
    monkeypatch.setitem(fetch.SOURCES, "azure-2023-conv", fetch.PublishedFile(address, DIGEST))
    return address


def complaint(cache):
    with pytest.raises(BadInput) as caught:
        fetch.fetch("azure-2023-conv", cache)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_digests_are_those_of_the_real_files(data):
    for name, source in fetch.SOURCES.items():
        (stored,) = (data / "traces").glob(f"*/{source.file_name}.gz")
        assert hashlib.sha256(gzip.decompress(stored.read_bytes())).hexdigest() == source.sha256, name


def test_the_addresses_are_the_public_ones():
    public = "https://raw.githubusercontent.com/"
    azure = public + "Azure/AzurePublicDataset/master/data/AzureLLMInferenceTrace_"
    mooncake = public + "kvcache-ai/Mooncake/main/FAST25-release/traces/"
    vidur = public + "microsoft/vidur/main/data/processed_traces/"
    assert {name: fetch.SOURCES[name].address for name in fetch.NAMES} == {
        "azure-2023-conv": azure + "conv.csv",
        "azure-2023-code": azure + "code.csv",
        "mooncake-conversation": mooncake + "conversation_trace.jsonl",
        "mooncake-synthetic": mooncake + "synthetic_trace.jsonl",
        "vidur-arxiv": vidur + "arxiv_summarization_stats_llama2_tokenizer_filtered_v2.csv",
    }


def test_a_trace_is_downloaded_once_and_then_taken_from_the_cache(server, tmp_path):
    cache = tmp_path / "not" / "there yet"
    path = fetch.fetch("azure-2023-conv", cache)
    assert path == cache / "conv.csv"
    assert path.read_bytes() == CONTENT
    assert fetch.fetch("azure-2023-conv", cache) == path
    assert server.asked == ["/data/conv.csv"]
    assert list(cache.iterdir()) == [path]


def test_a_cached_file_of_another_digest_is_replaced(server, tmp_path):
    (tmp_path / "conv.csv").write_bytes(CONTENT[:-1])
    assert fetch.fetch("azure-2023-conv", tmp_path).read_bytes() == CONTENT
    assert server.asked == ["/data/conv.csv"]


def test_a_download_of_another_digest_leaves_nothing_behind(server, tmp_path):
    server.content = CONTENT + b"!"
    found = hashlib.sha256(server.content).hexdigest()
    assert complaint(tmp_path) == f"{server.address}: SHA-256 is {found}; expected {DIGEST}"
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_breaks_off_leaves_nothing_behind(server, tmp_path):
    server.announced = len(CONTENT) + 10
    assert complaint(tmp_path).startswith(f"azure-2023-conv: cannot download {server.address}: ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_gone_is_one_line_with_the_reason(server, tmp_path):
    server.content = None
    assert complaint(tmp_path) == (
        f"azure-2023-conv: cannot download {server.address}: Not Found; "
        f"put the file at {tmp_path / 'conv.csv'} by hand"
    )


def test_offline_is_one_line_with_address_reason_and_where_to_put_the_file(offline, tmp_path):
    said = complaint(tmp_path)
    assert said.startswith(f"azure-2023-conv: cannot download {offline}: ")
    assert "refused" in said
    assert said.endswith(f"; put the file at {tmp_path / 'conv.csv'} by hand")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("offline")
def test_a_file_put_there_by_hand_needs_no_network(tmp_path):
    (tmp_path / "conv.csv").write_bytes(CONTENT)
    assert fetch.fetch("azure-2023-conv", tmp_path).read_bytes() == CONTENT


@pytest.mark.usefixtures("offline")
def test_a_cache_that_is_no_folder_is_refused(tmp_path):
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    assert complaint(occupied / "cache").startswith(f"{occupied / 'cache' / 'conv.csv'}: the cache cannot be used: ")


@pytest.mark.usefixtures("server")
def test_a_target_that_cannot_be_written_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "conv.csv").mkdir()
    assert complaint(tmp_path).startswith(f"{tmp_path / 'conv.csv'}: cannot be written: ")
    assert [path.name for path in tmp_path.iterdir()] == ["conv.csv"]


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLOTSTEP_CACHE": "/own", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/x"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/x"}, "/xdg/slotstep"),
        ({"HOME": "/home/x"}, "/home/x/.cache/slotstep"),
    ],
)
def test_the_cache_folder_comes_from_the_environment(monkeypatch, variables, expected):
    for name in ("SLOTSTEP_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(fetch.cache_folder()) == expected


@pytest.mark.usefixtures("server")
def test_without_a_folder_the_cache_of_the_environment_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("SLOTSTEP_CACHE", str(tmp_path))
    assert fetch.fetch("azure-2023-conv") == tmp_path / "conv.csv"


def test_an_unknown_name_names_the_nearest_known(tmp_path):
    with pytest.raises(BadInput, match=r"^azure-conv: unknown trace; did you mean azure-2023-conv\?$"):
        fetch.fetch("azure-conv", tmp_path)
