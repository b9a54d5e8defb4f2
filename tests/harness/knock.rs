//! Attempts of an agent's program to pose as the operator.

use crate::{Endpoints, stage::GRANT};
use serde_json::Value;

/// Python program that contacts the hub in the way of its first argument, and prints the response.
pub const KNOCK: &str = r#"
import array, ctypes, json, os, socket, subprocess, sys, threading, time, urllib.request

how, data, port, method, params = sys.argv[1:6]
path = data + "/a2a-hub.sock" if len(sys.argv) < 7 else sys.argv[6]
request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(params)})


def over_unix():
    it = socket.socket(socket.AF_UNIX)
    it.connect(path)
    return it


def over_tcp():
    return socket.create_connection(("127.0.0.1", int(port)))


def http(more=""):
    return (f"POST / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(request)}\r\nconnection: close\r\n{more}\r\n{request}").encode()


def answer(it):
    it.settimeout(20)
    got = b""
    while b"\n" not in got if it.family == socket.AF_UNIX else True:
        more = it.recv(65536)
        if not more:
            break
        got += more
    return got.decode()


def ask_unix(it):
    it.sendall(request.encode() + b"\n")
    return answer(it)


if how == "unix":
    said = ask_unix(over_unix())
elif how == "http":
    it = over_tcp()
    it.sendall(http())
    said = answer(it)
elif how == "token":
    token = open(data + "/http-token").read().strip()
    it = over_tcp()
    it.sendall(http(f"authorization: Bearer {token}\r\n"))
    said = answer(it)
elif how == "in-flight":
    # Nobody has the connection open while the hub looks whose it is: it waits in a queue of this program's own.
    ours, theirs = socket.socketpair()
    it = over_tcp()
    socket.send_fds(ours, [b"x"], [it.fileno()])
    it.sendall(http())
    it.close()
    time.sleep(1)
    _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
    said = answer(socket.socket(fileno=fds[0]))
elif how == "thread":
    # A thread whose table of descriptors is its own.
    told = []

    def knock():
        ctypes.CDLL(None).unshare(0x400)
        it = over_tcp()
        it.sendall(http())
        told.append(answer(it))

    thread = threading.Thread(target=knock)
    thread.start()
    thread.join()
    said = told[0]
elif how == "heir":
    # Whoever connected is gone; its child has the connection.
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        it = over_unix()
        socket.send_fds(theirs, [b"x"], [it.fileno()])
        os._exit(0)
    os.wait()
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    said = ask_unix(socket.socket(fileno=fds[0]))
elif how == "daemon":
    # A session of its own, and no parent that lives.
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.3)
            os.write(write, ask_unix(over_unix()).encode())
        os._exit(0)
    os.wait()
    os.close(write)
    said = b"".join(iter(lambda: os.read(read, 65536), b"")).decode()
print(said.replace("\r", "").replace("\n", " "), flush=True)
"#;

/// Configuration of a hub whose guest's programs are not confined, so that they reach its
/// endpoints.
pub fn unconfined() -> String {
    GRANT.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n")
}

/// Arguments of `knock.py` after the first.
pub fn arguments(hub: &Endpoints, method: &str, params: &Value) -> String {
    let port = hub.http().rsplit(':').next().unwrap_or_default().trim_end_matches('/');
    let (data, socket) = (hub.data_dir(), hub.socket().display());
    format!("'{}' {port} {method} '{params}' '{socket}'", data.display())
}
