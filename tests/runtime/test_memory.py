"""How much memory is free, also on systems that do not say."""

import os
import sys
from pathlib import Path

import pytest

from neuralucb.runtime.errors import InputError
from neuralucb.runtime.memory import host_bytes, require_memory


def test_a_machine_has_no_more_than_its_pages():
    assert 0 < host_bytes() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_nothing_is_refused_where_the_system_reports_no_memory(monkeypatch):
    """As on Windows, which has neither sysconf nor /proc."""

    def read_text(path, *_, **__):
        raise FileNotFoundError(path)

    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(Path, "read_text", read_text)
    assert host_bytes() == sys.maxsize
    require_memory(10**15, what="Z", cure="take less", host=True)


def test_what_does_not_fit_is_refused_with_its_size_and_a_cure():
    with pytest.raises(InputError, match=r"Z needs 1000000000.0 GB and .* GB are free; take less\."):
        require_memory(10**18, what="Z", cure="take less", host=True)
