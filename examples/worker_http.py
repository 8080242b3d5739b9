"""A worker over HTTP, in plain Python: claims one task after another until none is ready.

    ATB_KEY=… python examples/worker_http.py http://127.0.0.1:8765 ada

Put your own work into ``work``. It must take less time than the lease; ``worker.py`` shows how to renew one. If the
server asks for keys, ``ATB_KEY`` is the key of the agent, made by ``atb key add ada``. Never put it into a URL or on a
command line: other users can see those.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

LEASE = "1h"


def work(task):
    """Do the task and return its result. This example counts the words of its body."""
    return {"words": len(task["body"].split())}


class RefusedError(Exception):
    """The server refused a call."""


class Server:
    """The API at an address, over one connection that is kept."""

    def __init__(self, url, key):
        parts = urlsplit(url)
        connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = connect(parts.hostname, parts.port)
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def post(self, path, **fields):
        """Make a call and return its ``data``; repeat it while the board is busy."""
        while True:
            self._connection.request("POST", path, json.dumps(fields), self._headers)
            answer = self._connection.getresponse()
            envelope = json.load(answer)
            if answer.status != 503:
                break
            time.sleep(float(answer.getheader("Retry-After", "1")))
        if not envelope["ok"]:
            error = envelope["error"]
            raise RefusedError(f"{error['code']}: {error['message']}\n{error['hint']}")
        return envelope["data"]


def run(server, agent):
    """Work until nothing is ready."""
    while (claim := server.post("/api/claim", agent=agent, lease=LEASE)) is not None:
        task, token = claim["task"], claim["lease"]["token"]
        path = f"/api/tasks/{task['id']}"
        try:
            result = work(task)
        except Exception as error:
            server.post(f"{path}/fail", token=token, error=f"{type(error).__name__}: {error}")
        else:
            server.post(f"{path}/complete", token=token, result=result)


def main():
    """Work with the server, under the agent name, that the command line gives."""
    if len(sys.argv) != 3:
        print("usage: python examples/worker_http.py URL AGENT", file=sys.stderr)
        return 2
    try:
        run(Server(sys.argv[1], os.environ.get("ATB_KEY")), sys.argv[2])
        return 0
    except RefusedError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
