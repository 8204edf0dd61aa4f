"""What people send by mistake: refused in words, and nothing of it is kept."""

from tests.service.direct import play


def test_a_path_that_is_not_utf_8_is_refused_and_registers_nothing(tmp_path):
    async def scenario(client):
        for method, path in (("PUT", "/v1/arms/%ff"), ("GET", "/v1/decisions/%ff"), ("DELETE", "/v1/arms/a%c3")):
            refused = await client(method, path, {"features": {}})
            assert (refused.status, refused.json["error"]["code"]) == (400, "invalid_request")
        assert (await client("GET", "/v1/arms")).json == {"arms": []}

    play(scenario, tmp_path)
