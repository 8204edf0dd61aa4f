"""`neuralucb store`: what an operator types."""

import pytest

from neuralucb import InputError
from neuralucb.logs import open_log
from neuralucb.service.postgres import read_address
from neuralucb.service.store import Reward
from tests.postgres.helpers import opened, request, rows


def test_a_store_is_exported_cleaned_and_excluded_from(command, address, tmp_path):
    with opened(address) as store:
        store.decide([request("a", user="anna"), request("b", user="ben")])
        store.reward([Reward("a", 1.0)])
    code, out, err = command("store", "export", address, tmp_path / "log.parquet", "--since", "2020-01-01")
    assert code == 0, err
    assert "log.parquet: 2 decisions" in out
    assert "arm 2 is arm 2" in err
    assert open_log(tmp_path / "log.parquet").decisions == 2
    assert command("store", "delete-user", address, "anna")[1] == "1 decision deleted, 0 of them learned from\n"
    assert rows(address, "SELECT event_id FROM events") == [("b",)]
    assert command("store", "exclude", address, "2020-01-01", "2100-01-01")[1].startswith("1 decision excluded")
    code, _, err = command("store", "exclude", address, "yesterday", "2100-01-01")
    assert code == 2
    assert "since must be a time" in err


def test_an_address_says_which_schema_and_what_the_process_does():
    read = read_address("postgresql://me:secret@db:5432/shop?sslmode=require&schema=boots&role=learn&keep_days=90")
    assert read.conninfo == "postgresql://me:secret@db:5432/shop?sslmode=require"
    assert read[1:] == ("boots", "learn", 90.0)
    assert "secret" not in read.shown
    for wrong in (
        "mysql://db/x",
        "postgresql://db/x?schema=a;b",
        "postgresql://db/x?role=boss",
        "postgres://x?keep_days=y",
    ):
        with pytest.raises(InputError, match="must be"):
            read_address(wrong)


@pytest.mark.parametrize(
    "address",
    [
        "mysql://me:secret@db/x",
        "me:secret@db/x",
        "postgresql://me:secret/more@db/x",
        "postgresql://me:12/secret@db/x",
        "postgresql://me:secret?more@db/x",
        "postgresql://me:secret#more@db/x",
        "postgresql://me:12#secret@db/x",
        "postgresql://me:more@secret@db/x",
        "postgresql://me:secret\u2100@db/x",
        "postgresql://me:secret[@db/x",
    ],
)
def test_a_password_that_is_not_quoted_is_refused_and_never_shown(address):
    with pytest.raises(InputError, match="store must") as told:
        read_address(address)
    assert "secret" not in str(told.value)


def test_addresses_of_all_kinds_are_read():
    for address in (
        "postgresql://me:a%2Fb%40c@db/x",
        "postgresql://db1:5432,db2/x?target_session_attrs=read-write",
        "postgresql://me@[::1]:5432/x",
        "postgresql:///x?host=/run/postgresql&user=me@tenant",
        "postgres://%2Frun%2Fpostgresql/x",
    ):
        assert read_address(address).conninfo.startswith("postgres")
