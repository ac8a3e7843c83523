"""Asking a server over HTTP, as anybody outside of the process would."""

import asyncio
import http.client
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


async def ask(port: int, path: str, method: str = "GET", host: str = "127.0.0.1") -> Answer:
    """In a thread: the server may run in the loop of the test."""

    def ask() -> Answer:
        connection = http.client.HTTPConnection(host, port, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, answer.read())
        finally:
            connection.close()

    return await asyncio.to_thread(ask)
