"""The page of a report, in a real browser."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from neuralucb.display.sweep_report import write_report
from tests.processes import started
from tests.sweeps.helpers import run_tiny


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_report(run_tiny(tmp_path_factory.mktemp("page") / "out"))


def look(arguments):
    """What a browser prints; all of its processes are ended."""
    with started(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as browser:
        printed, _ = browser.communicate(timeout=120)
        assert browser.returncode == 0
    return printed


INSTALL_SECONDS = 300
"""How long a browser that is being installed is waited for."""


@pytest.fixture(scope="module")
def browser():
    installing, until = os.environ.get("NEURALUCB_BROWSER_INSTALLING"), time.monotonic() + INSTALL_SECONDS
    while installing and Path(installing).exists() and time.monotonic() < until:
        time.sleep(0.5)
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    return found or pytest.skip("no Chromium here to look at the page with")


@pytest.mark.waits
@pytest.mark.parametrize(("width", "height"), [(1400, 1600), (500, 1600)], ids=["wide", "phone"])
def test_the_page_looks_right_in_a_browser(browser, page, tmp_path, width, height):
    measured = tmp_path / "measured.html"
    script = "<script>document.title = document.documentElement.scrollWidth + ' ' + innerWidth</script></body>"
    measured.write_text(page.read_text().replace("</body>", script))
    options = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},{height}"]
    options.append(f"--user-data-dir={tmp_path / 'profile'}")
    dom = look([*options, "--dump-dom", measured.as_uri()])
    inside, window = (int(part) for part in dom.split("<title>")[1].split("</title>")[0].split())
    assert inside <= window, "the page is wider than the window"
    picture = tmp_path / "page.png"
    look([*options, f"--screenshot={picture}", page.as_uri()])
    from matplotlib.image import imread

    pixels = imread(picture)
    assert pixels.shape[:2] == (height, width)
    assert (pixels[..., :3].min(axis=2) < 0.5).mean() > 0.005  # something is drawn
    colours = np.unique(pixels[..., :3].reshape(-1, 3).round(1), axis=0)
    assert len(colours) > 20
