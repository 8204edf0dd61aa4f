"""The dashboard of a live service, in a real browser."""

import random
import re
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.processes import started
from tests.service.live import serving

ARMS = [{"id": name, "features": {"kind": name}} for name in ("tea", "<b>coffee</b>", "w" * 200)]
FRAME = """<!DOCTYPE html><title>0 0 0</title><iframe id="it" src="/" width="{width}" height="900"></iframe><script>
document.getElementById('it').onload = event => {{
  const page = event.target.contentDocument, root = page.documentElement;
  document.title = root.scrollWidth + ' ' + root.clientWidth + ' ' + page.querySelectorAll('section').length;
}};</script>"""


@pytest.fixture(scope="module")
def browser():
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    return found or pytest.skip("no Chromium here to look at the page with")


@pytest.fixture(scope="module")
def live(tmp_path_factory, browser):
    generator = random.Random(0)
    with serving(tmp_path_factory.mktemp("live")) as server:
        for number in range(80):
            event = f"event-{number}"
            server.ask("POST", "/v1/decide", {"event_id": event, "context": {"hour": number % 24}, "arms": ARMS})
            server.ask("POST", "/v1/reward", {"event_id": event, "reward": int(generator.random() < 0.5)})
        time.sleep(1.1)  # counters are up to a second old, and a browser's virtual time passes faster
        yield server


def look(browser, folder, url, *options, milliseconds=1000):
    """The page as the browser has it after some time, and what the browser logs."""
    arguments = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--no-first-run",
        "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={folder / 'profile'}", f"--virtual-time-budget={milliseconds}", *options, "--dump-dom", url,
    ]  # fmt: skip
    with started(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        printed, logged = process.communicate(timeout=120)
        assert process.returncode == 0, logged
    return printed, logged


@contextmanager
def framed(live, width):
    """The address of a page that shows the dashboard in a frame of a width, which its own headers would forbid."""

    class Relay(BaseHTTPRequestHandler):
        def do_GET(self):
            text = FRAME.format(width=width).encode() if self.path == "/frame" else live.ask("GET", self.path)[1]
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/frame"
        finally:
            server.shutdown()
            thread.join()


def test_the_page_shows_the_numbers_again_and_again_and_asks_nobody_else(browser, live, tmp_path):
    dom, logged = look(browser, tmp_path, f"{live.endpoint}/", milliseconds=6500)
    assert "CONSOLE" not in logged  # neither an error, nor a request that the page's policy refused
    assert "<dd>80 in all</dd>" in dom
    assert "&lt;b&gt;coffee&lt;/b&gt;" in dom
    mean = float(re.search(r"<dt>Mean reward</dt><dd>([\d.]+)</dd>", dom)[1])
    assert mean == pytest.approx(live.ask("GET", "/v1/status")[1]["values"]["served"]["value"], abs=0.005)
    assert len(re.findall(r"<svg class=.chart.", dom)) >= 2
    requests = live.ask("GET", "/metrics")[1].decode()
    assert int(re.search(r'requests_total\{route="GET /",status="200"\} (\d+)', requests)[1]) >= 2
    assert 'route="none"' not in requests  # it looks for nothing that does not exist


def test_an_error_or_a_request_elsewhere_would_be_seen(browser, tmp_path):
    """The control."""
    policy = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
    for page in ("<script>nothing()</script>", f"{policy}<img src=http://example.invalid/x.png>"):
        file = tmp_path / "page.html"
        file.write_text(page)
        assert "CONSOLE" in look(browser, tmp_path, file.as_uri())[1], page


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_never_wider_than_the_window(browser, live, tmp_path, width):
    with framed(live, width) as address:
        dom, _ = look(browser, tmp_path, address, f"--window-size={width + 60},1000")
    inside, window, panels = map(int, re.search(r"<title>(\d+) (\d+) (\d+)</title>", dom).groups())
    assert panels == 7
    assert width - 20 <= window <= width
    assert inside <= window


def test_with_tokens_the_page_asks_for_one(browser, tmp_path):
    config = '[bandit]\nalgorithm = "lin-ucb"\nslots = 16\n[tokens]\nadmin = ["admin-admin-admin"]\n[store]\narms = 2\n'
    with serving(tmp_path, config=config) as server:
        dom, logged = look(browser, tmp_path, f"{server.endpoint}/")
    assert "A token is needed" in dom
    assert "Decisions per minute" not in dom
    assert "CONSOLE" not in logged
