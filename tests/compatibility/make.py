"""Makes data.tar.xz: the data directory of a hub with tasks in every state. A test has a later hub
open, replay and serve it.

Run python3 make.py A2A_HUB COMPONENTS, with a program and the folder of components that `cargo
xtask guests` makes, both of one commit. The hub is killed at the end, so the directory is as after
a crash.
"""
import http.client, json, os, shutil, signal, subprocess, sys, tarfile, tempfile, time, uuid

PROGRAM, COMPONENTS = sys.argv[1], sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = tempfile.mkdtemp(prefix="hub-")
DATA, WORK, SOCKET = f"{ROOT}/data", f"{ROOT}/work", f"{ROOT}/s"
PORT = 18089
CONFIG = open(f"{HERE}/config.toml").read()


def command(*args):
    return [PROGRAM, "--data-dir", DATA, "--socket", SOCKET, "--config", f"{ROOT}/config.toml", *args]


def rpc(method, params):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    assert "result" in answer, answer
    return answer["result"]


def send(agent, text, wait=True, message_id=None, context=None, **configuration):
    message = {"messageId": message_id or str(uuid.uuid4()), "role": "user", "parts": [{"kind": "text", "text": text}]}
    if context:
        message["contextId"] = context
    metadata = {"targetAgent": agent}
    return rpc("message/send", {"message": message, "metadata": metadata, "configuration": {"blocking": wait, **configuration}})


def until(task, state):
    for _ in range(600):
        if rpc("tasks/get", {"id": task})["status"]["state"] == state:
            return
        time.sleep(0.1)
    raise SystemExit(f"{task} is not {state}")


os.makedirs(f"{DATA}/plugins", mode=0o700)
os.makedirs(WORK)
os.makedirs(f"{ROOT}/home")
open(f"{ROOT}/config.toml", "w").write(CONFIG)
for name, component in [("guest", "test-guests"), ("slow", "test-guests"), ("durable", "durable-guest")]:
    shutil.copy(f"{COMPONENTS}/{component}.wasm", f"{DATA}/plugins/{name}.wasm")
os.chmod(DATA, 0o700)
log = open(f"{ROOT}/log", "wb")
environment = {"HOME": f"{ROOT}/home", "PATH": os.environ["PATH"]}
start = command("start", "--foreground", "--http-port", str(PORT), "--workspace", WORK)
hub = subprocess.Popen(start, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=WORK)
for _ in range(3000):
    try:
        if {"guest", "slow", "durable"} <= {agent["id"] for agent in rpc("hub/agents/list", {})}:
            break
    except (OSError, AssertionError):
        pass
    time.sleep(0.1)
grants = [
    ("guest", ["--memory", "--files", "--program", "sh", "--program", "sleep", "--delegate", "echo"]),
    ("slow", ["--program", "sh"]),
    ("durable", ["--memory", "--program", "sh", "--delegate", "guest"]),
]
for name, what in grants:
    granted = subprocess.run(command("plugin", "grant", name, *what), env=environment, cwd=WORK, capture_output=True, text=True)
    assert granted.returncode == 0, granted.stderr

tasks = {}
tasks["completed"] = send("guest", "remember colour blue")["id"]
tasks["artifact"] = send("guest", "flood 3")["id"]
tasks["failed"] = send("guest", "fail")["id"]
tasks["rejected"] = send("guest", "reject")["id"]
tasks["idempotent"] = send("guest", "remember again 1", message_id="sent-again")["id"]
tasks["thought"] = send("guest", "think goal=tidy up", context="in-mind")["id"]
canceled = send("guest", "sh sleep 600", wait=False)["id"]
until(canceled, "working")
rpc("tasks/cancel", {"id": canceled})
tasks["canceled"] = canceled
tasks["input-required"] = send("guest", "ask which colour")["id"]
tasks["auth-required"] = send("guest", "auth")["id"]
push = {"url": "http://127.0.0.1:9/news", "token": "t"}
tasks["pushed"] = send("guest", "flood 2", pushNotificationConfig=push)["id"]
tasks["replayed-waiting"] = send("durable", "say begun\nstep a echo a\nask may I?\nstep z echo z")["id"]
tasks["replayed-at-work"] = send("durable", "say begun\nstep a echo a\nsleep 3000\nstep z echo z", wait=False)["id"]
tasks["replayed-tree"] = send("durable", "step a echo a\ncall guest ask which way\nstep z echo z")["id"]
tasks["working"] = send("slow", "sh sleep 600", wait=False)["id"]
until(tasks["working"], "working")
tasks["queued"] = send("slow", "sh echo ran", wait=False)["id"]
time.sleep(1)
hub.send_signal(signal.SIGKILL)
hub.wait()
time.sleep(1)
for name in ["cache", "files", "homes"]:
    shutil.rmtree(f"{DATA}/{name}", ignore_errors=True)
for name in ["cache-key", "run.json", "hub.lock", "grants.toml.lock"]:
    os.remove(f"{DATA}/{name}")
json.dump(tasks, open(f"{DATA}/tasks.json", "w"), indent=1)
with tarfile.open(f"{HERE}/data.tar.xz", "w:xz") as archive:
    archive.add(DATA, "data")
shutil.rmtree(ROOT)
