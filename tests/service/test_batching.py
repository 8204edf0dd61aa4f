"""Batches: what waits is handled together, each item has its own result, and a full queue says so."""

import asyncio
import threading

import pytest

from neuralucb.service import batching
from neuralucb.service.batching import Batcher
from neuralucb.service.errors import ServiceError


def test_an_error_belongs_to_its_item_and_one_of_the_whole_to_all():
    def handle(items):
        if "all" in items:
            raise OSError("disk")
        return [ValueError(item) if item == "bad" else item.upper() for item in items]

    async def run():
        batcher = Batcher("test", handle, most=10, queue=10)
        try:
            results = await batcher.submit(["a", "bad", "b"])
            assert results[0::2] == ["A", "B"]
            assert isinstance(results[1], ValueError)
            assert [str(each) for each in await batcher.submit(["all", "c"])] == ["disk", "disk"]
            assert await batcher.submit(["c"]) == ["C"]
        finally:
            batcher.close()

    asyncio.run(run())


def test_what_gathers_while_a_batch_is_handled_is_the_next_batch():
    sizes, entered, go_on = [], threading.Event(), threading.Event()

    def handle(items):
        sizes.append(len(items))
        entered.set()
        assert go_on.wait(30)
        return items

    async def run():
        batcher = Batcher("test", handle, most=4, queue=6)
        try:
            first = batcher.submit([0])
            await asyncio.get_running_loop().run_in_executor(None, entered.wait, 30)
            waiting = [batcher.submit([number]) for number in range(1, 7)]
            with pytest.raises(ServiceError, match="wait already"):
                batcher.submit([7])
            go_on.set()
            assert await asyncio.gather(first, *waiting) == [[number] for number in range(7)]
        finally:
            go_on.set()
            batcher.close()
        with pytest.raises(ServiceError, match="stopping"):
            batcher.submit([8])

    asyncio.run(run())
    assert sizes == [1, 4, 2]


def test_requests_that_arrive_together_are_one_batch():
    sizes = []

    def handle(items):
        sizes.append(len(items))
        return items

    async def run():
        batcher = Batcher("test", handle, most=10, queue=10)

        async def ask(number):
            return await batcher.submit([number])

        try:
            assert await asyncio.gather(*map(ask, range(5))) == [[number] for number in range(5)]
        finally:
            batcher.close()

    asyncio.run(run())
    assert sizes == [5]


@pytest.mark.parametrize(("patience", "expected"), [(60.0, [8, 8]), (0.0, [8, 4, 4])])
def test_a_batch_waits_for_as_many_as_batches_had_but_no_longer_than_a_moment(patience, expected, monkeypatch):
    monkeypatch.setattr(batching, "PATIENCE", patience)
    sizes = []

    def handle(items):
        sizes.append(len(items))
        return items

    async def run():
        batcher = Batcher("test", handle, most=64, queue=64)
        try:
            await batcher.submit([0] * 8)
            late = batcher.submit([1] * 4)
            if not patience:
                await late
            await asyncio.gather(late, batcher.submit([2] * 4))
        finally:
            batcher.close()

    asyncio.run(asyncio.wait_for(run(), 30))
    assert sizes == expected
