//! Confined programs: their permitted work, and refused escape attempts. Each test covers one or
//! more rows of the table in `docs/SECURITY.md`.

use super::python::{HEADLESS, in_a_thread};
use super::*;
use a2a_hub_process::confine::{Ceilings, Confinement, Network};
use std::{
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::symlink,
            net::{SocketAddr, UnixListener},
        },
    },
    path::PathBuf,
};

/// A hub with a workspace, a secret, and a program's temporary directory.
struct House {
    hub: Fixture,
    /// A separate directory, next to the hub's data directory.
    place: TempDir,
}

impl House {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["work", "tmp", "secret"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("secret/token"), "hush").unwrap();
        Self { hub: Fixture::new(System::Linux), place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    fn confinement(&self) -> Confinement {
        Confinement {
            write: vec![self.path("work")],
            temporary: self.path("tmp"),
            ..Confinement::default()
        }
    }

    async fn start(&self, confinement: Confinement, program: &str, args: &[&str]) -> Child {
        let launch = launch(&self.path("work"), program, args);
        let launch = Launch { confinement: Some(confinement), ..launch };
        self.hub.supervisor.spawn(launch).await.unwrap()
    }

    /// Standard output and error of a script, and its exit.
    async fn sh_in(&self, confinement: Confinement, script: &str) -> (String, ProgramExit) {
        let mut child = self.start(confinement, "/bin/sh", &["-c", script]).await;
        let (stdout, stderr, exit) = finish(&mut child).await;
        (String::from_utf8([stdout, stderr].concat()).unwrap(), exit)
    }

    async fn sh(&self, script: &str) -> (String, ProgramExit) {
        self.sh_in(self.confinement(), script).await
    }

    /// Standard output of a Python script.
    async fn python(&self, confinement: Confinement, script: &str) -> String {
        let mut child = self.start(confinement, "/usr/bin/python3", &["-Ic", script]).await;
        let (stdout, stderr, exit) = finish(&mut child).await;
        assert_eq!(exit, ProgramExit::Code(0), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }
}

#[tokio::test]
async fn this_machine_confines_programs() {
    let house = House::new();
    let support = house.hub.supervisor.support().await.unwrap();
    assert_eq!(support.allows(&Network::Nothing), Ok(()), "{support:?}");
    assert!(support.describe().starts_with("namespaces, seccomp"), "{}", support.describe());
    assert_eq!(house.hub.supervisor.running(), 0);
}

#[tokio::test]
async fn confined_program_works_in_workspace() {
    let house = House::new();
    let script = "read line; echo \"$line\" > made; cat made; pwd; echo x > /tmp/y; mktemp -d >/dev/null; \
        ls /usr/bin/env /etc/passwd /proc/self/status >/dev/null; echo done >/dev/stdout; exit 7";
    let mut child = house.start(house.confinement(), "/bin/sh", &["-c", script]).await;
    child.write_stdin(b"hello\n").await.unwrap();
    let (stdout, stderr, exit) = finish(&mut child).await;
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    let work = house.path("work");
    assert_eq!(stdout, format!("hello\n{}\ndone\n", work.display()), "{stderr}");
    assert_eq!(exit, ProgramExit::Code(7));
    assert_eq!(fs::read_to_string(work.join("made")).unwrap(), "hello\n");
    assert_eq!(fs::read_to_string(house.path("tmp/y")).unwrap(), "x\n", "its /tmp is its own");
    for (script, expected) in [
        ("exit 0", ProgramExit::Code(0)),
        ("kill -KILL $$", ProgramExit::Signal(9)),
        ("kill -SEGV $$", ProgramExit::Signal(11)),
    ] {
        assert_eq!(house.sh(script).await.1, expected, "{script}");
    }
}

#[tokio::test]
async fn confined_program_receives_signals() {
    let house = House::new();
    let script = "trap 'echo int' INT; trap 'echo term; exit 3' TERM; echo ready; \
        while :; do sleep 0.01; done";
    let mut child = house.start(house.confinement(), "/bin/sh", &["-c", script]).await;
    read_to(&mut child, "ready\n").await;
    child.interrupt();
    read_to(&mut child, "int\n").await;
    child.kill();
    let (stdout, _, exit) = finish(&mut child).await;
    assert_eq!((&*stdout, exit), (&b"term\n"[..], ProgramExit::Code(3)));
    let mut plain = house.start(house.confinement(), "/bin/sleep", &["1000"]).await;
    plain.kill();
    assert_eq!(finish(&mut plain).await.2, ProgramExit::Signal(15), "one without a handler, too");
}

#[tokio::test]
async fn confined_program_sees_named_paths_only() {
    let house = House::new();
    fs::create_dir(house.path("tool")).unwrap();
    fs::write(house.path("tool/lib"), "code").unwrap();
    fs::create_dir(house.path("work/hub")).unwrap();
    fs::write(house.path("work/hub/hub.db"), "tasks").unwrap();
    fs::write(house.path("work/.netrc"), "password").unwrap();
    fs::create_dir(house.path("work/hub/home")).unwrap();
    symlink(house.path("secret"), house.path("work/out")).unwrap();
    let confinement = Confinement {
        read: vec![house.path("tool"), house.path("no such")],
        write: vec![house.path("work"), house.path("work/hub/home")],
        hidden: vec![house.path("work/hub"), house.path("work/.netrc"), house.path("secret")],
        scratch: vec![house.path("scratch")],
        ..house.confinement()
    };
    let place = house.path("").display().to_string();
    let script = format!(
        "cd {place}; cat tool/lib; echo; ls; ls -A work/hub; cat work/.netrc; echo s > scratch/s && cat scratch/s; \
         echo h > work/hub/home/h; \
         for f in {data} secret/token work/out/token /root /home /run /var /etc/shadow /sys/kernel /boot; do \
            cat $f/* $f >/dev/null 2>&1 && echo read $f; \
         done; \
         for f in tool/new work/hub/new /new /usr/new /etc/new /var/new /dev/new /proc/sys/kernel/core_pattern; do \
            (echo > $f) 2>/dev/null && echo written $f; \
         done; true",
        data = house.hub.data.path().display(),
    );
    let (said, _) = house.sh_in(confinement, &script).await;
    assert_eq!(said, "code\nscratch\ntmp\ntool\nwork\nhome\ns\n".replace("tmp\n", ""));
    assert!(house.path("work/hub/home/h").exists());
    assert!(!house.path("scratch").exists(), "it was gone with its program");
}

#[tokio::test]
async fn linked_path_prevents_start() {
    let house = House::new();
    symlink(house.path("secret"), house.path("link")).unwrap();
    let launch = launch(&house.path("work"), "/bin/sh", &["-c", "true"]);
    let confinement = Confinement { write: vec![house.path("link")], ..house.confinement() };
    let launch = Launch { confinement: Some(confinement), ..launch };
    let why = house.hub.supervisor.spawn(launch).await.unwrap_err();
    assert!(matches!(why, SpawnError::NotConfined { .. }), "{why}");
    assert!(why.to_string().contains("it was not confined, so it was not started"), "{why}");
}

#[tokio::test]
async fn unseen_program_differs_from_missing_one() {
    let house = House::new();
    fs::copy("/bin/true", house.path("secret/tool")).unwrap();
    let program = house.path("secret/tool").display().to_string();
    let launch = launch(&house.path("work"), &program, &[]);
    let launch = Launch { confinement: Some(house.confinement()), ..launch };
    let why = house.hub.supervisor.spawn(launch.clone()).await.unwrap_err();
    assert!(matches!(why, SpawnError::Unseen { .. }), "{why}");
    let read = vec![house.path("secret/tool")];
    let confinement = Some(Confinement { read, ..house.confinement() });
    let mut child = house.hub.supervisor.spawn(Launch { confinement, ..launch }).await.unwrap();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Code(0));
}

#[tokio::test]
async fn confined_program_signals_own_tree_only() {
    let house = House::new();
    let us = std::process::id();
    let script = format!(
        "exec 2>/dev/null; ls /proc | grep -c '^[0-9]'; cat /proc/{us}/environ /proc/1/environ | wc -c; \
         kill -0 {us} && echo signalled the hub; kill -KILL 1; kill -KILL $PPID; sleep 0.05; \
         for fd in /proc/1/fd/*; do readlink $fd; done; cat /proc/1/mem && echo read the init; kill -KILL -1; echo alive"
    );
    let (said, exit) = house.sh(&script).await;
    let lines: Vec<_> = said.lines().collect();
    let [processes, environment, rest @ ..] = &lines[..] else { panic!("{said}") };
    assert!(processes.parse::<u32>().unwrap() <= 5, "{said}");
    assert_eq!(*environment, "0", "neither the hub's environment nor the init's");
    assert_eq!(rest, ["alive"], "{said}");
    assert_eq!(exit, ProgramExit::Code(0));
}

/// Network attempts of a program: `connect` to loopback ports, `listen`, path sockets and abstract
/// sockets.
const KNOCK: &str = r"
import socket, sys
def tried(name, act):
    try:
        act(); print(name, 'yes')
    except OSError as why:
        print(name, 'no')
port, other, path, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
tried('port', lambda: socket.create_connection(('127.0.0.1', port), 2))
tried('other', lambda: socket.create_connection(('127.0.0.1', other), 2))
tried('unbound', lambda: socket.socket().listen())
tried('fast', lambda: socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', other)))
def fast(message):
    one = socket.socket()
    one.sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', other))
tried('fast message', lambda: fast(b'x'))
def disconnected():
    one = socket.socket()
    one.setsockopt(6, 30, 1)
    one.connect(('127.0.0.1', other))
    one.send(b'x')
tried('fast connect', disconnected)
tried('mapped', lambda: socket.create_connection(('::ffff:127.0.0.1', other), 2))
tried('zero', lambda: socket.create_connection(('0.0.0.0', other), 2))
tried('dccp', lambda: socket.socket(socket.AF_INET, 6, 33))
tried('sctp', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
tried('smc', lambda: socket.socket(43, socket.SOCK_STREAM, 0))
tried('udplite', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136))
tried('alg', lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0))
tried('audit', lambda: socket.socket(16, socket.SOCK_RAW, 9))
tried('path', lambda: socket.socket(socket.AF_UNIX).connect(path))
tried('name', lambda: socket.socket(socket.AF_UNIX).connect('\0' + name))
tried('listen', lambda: socket.create_server(('127.0.0.1', 0)))
tried('mptcp', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
tried('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tried('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried('vsock', lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
def itself():
    with socket.create_server(('127.0.0.1', 0)) as server:
        socket.create_connection(server.getsockname(), 2)
tried('itself', itself)
";

#[tokio::test]
async fn only_granted_sockets_are_reachable() {
    let house = House::new();
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let (granted, hub) = (listen(), listen());
    let path = house.path("bus");
    let _bus = UnixListener::bind(&path).unwrap();
    let name = format!("a2a-hub-test-{}", std::process::id());
    let name_of = SocketAddr::from_abstract_name(&name).unwrap();
    let _named = UnixListener::bind_addr(&name_of).unwrap();
    let args =
        [port(&granted).to_string(), port(&hub).to_string(), path.display().to_string(), name];
    let knock = async |network| {
        let args: Vec<_> =
            ["-Ic", KNOCK].into_iter().chain(args.iter().map(String::as_str)).collect();
        let confinement = Confinement { network, ..house.confinement() };
        let mut child = house.start(confinement, "/usr/bin/python3", &args).await;
        let (stdout, stderr, exit) = finish(&mut child).await;
        assert_eq!(exit, ProgramExit::Code(0), "{}", String::from_utf8_lossy(&stderr));
        let said = String::from_utf8(stdout).unwrap();
        let yes = said.lines().filter_map(|line| line.strip_suffix(" yes").map(str::to_owned));
        yes.collect::<Vec<_>>()
    };
    assert_eq!(knock(Network::Nothing).await, ["unbound", "listen", "itself"]);
    let ports = Network::Ports([port(&granted)].into());
    assert_eq!(knock(ports).await, ["port"]);
}

/// System calls with harmless arguments; each has to be refused before its arguments are evaluated.
const CALLS: &str = r"
import ctypes, errno, fcntl, os, pty
libc = ctypes.CDLL(None, use_errno=True)
calls = dict(ptrace=(101, 0), process_vm_readv=(310, 1), process_vm_writev=(311, 1), kcmp=(312,), pidfd_getfd=(438,),
    keyctl=(250, 0), add_key=(248,), request_key=(249,), bpf=(321,), kexec_load=(246,), init_module=(175,),
    finit_module=(313,), delete_module=(176,), perf_event_open=(298,), userfaultfd=(323, 1), mount=(165,), umount2=(166,),
    pivot_root=(155,), chroot=(161,), setns=(308,), fsopen=(430,), open_tree=(428,), move_mount=(429,),
    unshare_user=(272, 0x10000000), unshare_mount=(272, 0x20000), clone_user=(56, 0x10000000 | 17), reboot=(169,),
    swapon=(167,), settimeofday=(164,), sethostname=(170,), open_by_handle_at=(304,), fanotify_init=(300,), iopl=(172, 3),
    syslog=(103, 3), acct=(163,), io_uring_enter=(426,))
for name, args in calls.items():
    ctypes.set_errno(0)
    done = libc.syscall(*args, 0, 0, 0, 0)
    why = errno.errorcode.get(ctypes.get_errno(), 'done') if done < 0 else 'done'
    if why != 'EPERM': print(name, why)
for name, args in dict(clone3=(435,), io_uring_setup=(425, 1), x32_ptrace=(0x40000000 + 521,), x32_getpid=(0x40000000 + 39,)).items():
    ctypes.set_errno(0)
    done = libc.syscall(*args, 0, 0, 0, 0)
    if done >= 0 or ctypes.get_errno() != errno.ENOSYS: print(name, done, ctypes.get_errno())
ours, theirs = pty.openpty()
try:
    fcntl.ioctl(theirs, 0x5412, b'x'); print('TIOCSTI done')
except PermissionError: pass
status = dict(line.split(':\t') for line in open('/proc/self/status').read().splitlines() if ':\t' in line)
for name in 'CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp'.split(): print(name, int(status[name].strip(), 16))
import resource
print('core', resource.getrlimit(resource.RLIMIT_CORE))
if os.fork() == 0: os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
";

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn dangerous_system_calls_are_refused() {
    let house = House::new();
    let said = house.python(house.confinement(), CALLS).await;
    let none = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
        .map(|name| format!("{name} 0\n"))
        .concat();
    assert_eq!(said, format!("{none}NoNewPrivs 1\nSeccomp 2\ncore (0, 0)\n0\n"));
}

/// Escape attempts of an expert; each success is printed.
const ESCAPES: &str = r"
import ctypes, fcntl, mmap, os, pty, resource, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, act):
    try:
        if act() is not False: print(name)
    except (OSError, ValueError): pass
def in_child(act):
    child = os.fork()
    if child == 0:
        os.dup2(os.open('/dev/null', os.O_WRONLY), 2)
        try: act()
        except BaseException: os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
def says(fd, request): return libc.syscall(16, fd, ctypes.c_ulong(request), ctypes.c_char_p(b'x')) == 0
def write(path, text):
    with open(path, 'w') as file: file.write(text)
def old_call():
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3')
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
def of_memory():
    file = os.memfd_create('x', 0)
    os.write(file, open('/bin/cat', 'rb').read())
    os.execv('/proc/self/fd/%d' % file, ['cat', secret])
def shared():
    with open('/dev/shm/x', 'wb') as file:
        for _ in range(300): file.write(b'x' * (1 << 20))
secret = sys.argv[1]
ours, theirs = pty.openpty()
tried('its parent directory', lambda: 'secret' in os.listdir('..'))
tried('the secret by the root of init', lambda: open('/proc/1/root' + secret))
tried('the secret by its own root', lambda: open('/proc/self/root' + secret))
tried('the directory of init', lambda: os.listdir('/proc/1/cwd'))
def descriptors():
    for fd in os.listdir('/proc/self/fd'):
        to = os.readlink('/proc/self/fd/' + fd)
        if not to.startswith(('pipe:', '/dev/null', '/dev/pts/', '/dev/ptmx', '/proc/')): print(fd, to)
    return False
tried('descriptors', descriptors)
for path in '/dev/mem /dev/kmsg /dev/sda /dev/vda /proc/kcore /proc/1/environ /sys/kernel /sys/fs/cgroup /run /var/run'.split():
    tried(path, lambda: open(path, 'rb') if path.startswith(('/dev', '/proc')) else os.listdir(path))
for path in '/proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/1/oom_score_adj /etc/ld.so.preload'.split():
    tried('write ' + path, lambda: write(path, '1'))
tried('a device', lambda: os.mknod('device', 0o600 | stat.S_IFBLK, os.makedev(254, 0)))
tried('a link to a file of the system', lambda: os.link('/etc/passwd', 'mine'))
tried('a larger limit', lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2))
tried('priority', lambda: os.nice(-5))
tried('real time', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
tried('words for a terminal', lambda: says(theirs, 0x5412))
tried('words for a terminal, by the upper half', lambda: says(theirs, 0x7fffffff00005412))
tried('a call of 32 bits', lambda: in_child(old_call) == 0)
tried('a program of memory', lambda: in_child(of_memory) == 0)
tried('more than its share of /dev/shm', shared)
tried('a namespace', lambda: libc.unshare(0x10000000) == 0)
tried('the namespace of init', lambda: libc.setns(os.open('/proc/1/ns/mnt', os.O_RDONLY), 0) == 0)
tried('a file system', lambda: False if libc.mount(b'none', b'.', b'tmpfs', 0, None) else True)
";

#[tokio::test]
async fn escape_attempts_fail() {
    let house = House::new();
    let secret = house.path("secret/token").display().to_string();
    let args = ["-Ic", ESCAPES, &secret];
    let mut child = house.start(house.confinement(), "/usr/bin/python3", &args).await;
    let (stdout, stderr, exit) = finish(&mut child).await;
    let (said, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr));
    assert_eq!((said.as_str(), exit), ("", ProgramExit::Code(0)), "{stderr}");
}

#[tokio::test]
async fn fork_bomb_is_bounded_and_killed() {
    let house = House::new();
    let ceilings = Ceilings { processes: 400, ..Ceilings::default() };
    let confinement = Confinement { ceilings, ..house.confinement() };
    let bomb = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: print('full', flush=True); time.sleep(1)";
    let mut child = house.start(confinement, "/usr/bin/python3", &["-Ic", bomb]).await;
    let Output::Stdout(said) = next(&mut child).await else { panic!("it ended") };
    assert!(said.starts_with(b"full"));
    assert!(house.hub.alive().len() <= 410, "{}", house.hub.alive().len());
    child.kill();
    while !matches!(next(&mut child).await, Output::Exited(_)) {}
    nobody_within(house.hub.data.path(), PATIENCE).await;
}

#[tokio::test]
async fn process_memory_is_limited() {
    let house = House::new();
    let ceilings = Ceilings { memory_bytes: Some(256 << 20), ..Ceilings::default() };
    let confinement = Confinement { ceilings, ..house.confinement() };
    let greedy = "import mmap\nhoard = []\ntry:\n    while True: hoard.append(bytearray(16 << 20))\n\
        except MemoryError: print('refused', len(hoard) < 16)\n\
        try: mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS); print('mapped')\n\
        except OSError: print('nor mapped')\n\
        print(open('/proc/self/oom_score_adj').read().strip())";
    let said = house.python(confinement, greedy).await;
    assert_eq!(said, "refused True\nnor mapped\n1000\n");
}

#[tokio::test]
async fn tree_memory_is_limited() {
    let house = House::new();
    let limit = 256 << 20;
    let ceilings = Ceilings { memory_bytes: Some(limit), ..Ceilings::default() };
    let confinement = Confinement { ceilings, ..house.confinement() };
    let many = "import os, time\nfor n in range(8):\n    if os.fork() == 0:\n        hoard = b'x' * (100 << 20)\n        time.sleep(1000)\ntime.sleep(1000)";
    // `RLIMIT_DATA` counts none of these.
    let shared = "import mmap, time\nmap = mmap.mmap(-1, 400 << 20)\nfor at in range(0, len(map), 4096): map[at] = 1\ntime.sleep(1000)";
    let held = "import os, time\nfile = os.memfd_create('held')\nfor _ in range(400): os.write(file, bytes(1 << 20))\ntime.sleep(1000)";
    // Attempts to hide memory: a name that is not text, an ended first thread, hidden descriptors,
    // and descriptors of another thread only.
    let named = format!("import ctypes\nctypes.CDLL(None).prctl(15, bytes([255]))\n{shared}");
    let undumpable = format!("import ctypes\nctypes.CDLL(None).prctl(4, 0)\n{held}");
    let headless = format!("{}\n{HEADLESS}", in_a_thread(shared));
    let hidden = format!("import ctypes\nctypes.CDLL(None).unshare(0x400)\n{held}");
    let hidden = format!("{}\nimport time\ntime.sleep(1000)", in_a_thread(&hidden));
    let headless_held = format!("{}\n{HEADLESS}", in_a_thread(held));
    for (how, greedy) in [
        ("many", many),
        ("shared", shared),
        ("held", held),
        ("named", &named),
        ("undumpable", &undumpable),
        ("headless", &headless),
        ("hidden", &hidden),
        ("headless, held", &headless_held),
    ] {
        let mut child =
            house.start(confinement.clone(), "/usr/bin/python3", &["-Ic", greedy]).await;
        let said = next(&mut child).await;
        let Output::MemoryExceeded(told) = said else { panic!("{how}: {said:?}") };
        assert!(told.limit == limit && told.taken > limit, "{how}: {told:?}");
        assert_eq!(next(&mut child).await, Output::Exited(ProgramExit::Signal(9)), "{how}");
    }

    let modest = "import os, time\nhoard = b'x' * (150 << 20)\nchildren = [os.fork() for _ in range(3)]\n\
        time.sleep(1)\nif all(children): print(len(hoard) >> 20)";
    assert_eq!(house.python(confinement, modest).await, "150\n", "what is shared counts once");
}

#[tokio::test]
async fn file_size_is_limited() {
    let house = House::new();
    let ceilings = Ceilings { file_bytes: 1 << 20, ..Ceilings::default() };
    let confinement = Confinement { ceilings, ..house.confinement() };
    let (said, _) = house.sh_in(confinement, "head -c 2000000 /dev/zero > big; wc -c < big").await;
    assert!(said.contains("1048576"), "{said}");
    // Files in memory are limited as well.
    let (said, _) = house.sh("head -c 400000000 /dev/zero > /dev/shm/big; echo $?").await;
    assert!(said.contains("No space left") && said.starts_with("1\n"), "{said}");
}

#[tokio::test]
async fn new_session_ends_with_confined_program() {
    let house = House::new();
    let away = "(setsid sh -c 'exec env -i /bin/sleep 1717' >/dev/null 2>&1 &); \
        (setsid nohup sh -c 'trap \"\" TERM HUP; exec env -i /bin/sleep 1718' >/dev/null 2>&1 &) ; sleep 0.1; echo ready";
    let (said, exit) = house.sh(away).await;
    assert_eq!((&*said, exit), ("ready\n", ProgramExit::Code(0)));
    assert!(!somebody_sleeps("1717") && !somebody_sleeps("1718"));
}

#[tokio::test]
async fn killed_minder_takes_confined_program() {
    let house = House::new();
    let script =
        "setsid env -i /bin/sleep 1719 & sleep 0.05; echo ready; exec env -i /bin/sleep 1719";
    let mut child = house.start(house.confinement(), "/bin/sh", &["-c", script]).await;
    read_to(&mut child, "ready\n").await;
    let minder = alive(house.hub.data.path());
    let minder = minder.into_iter().find(|found| found.command.contains(SUPERVISE)).unwrap();
    kill_process(minder.pid, Signal::KILL).unwrap();
    assert_eq!(finish(&mut child).await.2, ProgramExit::Signal(9));
    let deadline = Instant::now() + PATIENCE;
    while somebody_sleeps("1719") {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(5)).await;
    }
}

/// True if a `sleep` of this duration runs, with any environment.
fn somebody_sleeps(long: &str) -> bool {
    let wanted = format!("/bin/sleep\0{long}\0");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    commands.any(|command| command == wanted.as_bytes())
}

/// A minder that cannot create namespaces, as on a machine that allows them to the superuser only.
fn minder_without_namespaces(place: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let script = place.join("minder");
    let minder = env!("CARGO_BIN_EXE_minder");
    let text = format!(
        "#!/bin/sh\nexec unshare --user --map-current-user --keep-caps sh -c \
         'echo 0 > /proc/sys/user/max_user_namespaces && exec {minder} \"$@\"' minder \"$@\"\n"
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[tokio::test]
async fn missing_confinement_refuses_with_remedy() {
    let house = House::new();
    let minder = minder_without_namespaces(&house.path(""));
    let poor = Supervisor::new(minder, house.hub.data.path().to_path_buf(), GRACE);
    let support = poor.support().await.unwrap();
    let why = support.allows(&Network::Nothing).unwrap_err().to_string();
    assert!(why.starts_with("failed to make a user and a PID namespace: No space"), "{why}");
    assert!(why.contains("user.max_user_namespaces"), "{why}");
    let launch = launch(&house.path("work"), "/bin/touch", &["made"]);
    let confined = Launch { confinement: Some(house.confinement()), ..launch.clone() };
    let why = poor.spawn(confined).await.unwrap_err();
    assert!(matches!(why, SpawnError::NotConfined { .. }), "{why}");
    assert!(!house.path("work/made").exists(), "never weakened");
    let mut plain = poor.spawn(launch).await.unwrap();
    assert_eq!(
        finish(&mut plain).await.2,
        ProgramExit::Code(0),
        "one that need not be confined runs"
    );
}

/// Mounts inside give access to no hidden file, and make no read-only one writable.
#[tokio::test]
async fn nested_confinement_opens_nothing() {
    let house = House::new();
    let nests = Confinement { nests: true, ..house.confinement() };
    let script = "unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /tmp && echo > /tmp/inner && echo inside; \
          mount -o remount,rw,bind /usr && echo remounted; umount -l /usr && echo unmounted; \
          echo x > /usr/new && echo written; ls /root && echo seen; \
          mount -t proc none /proc && ls /proc | grep -c \"^[0-9]\"' 2>/dev/null; true";
    let (said, _) = house.sh_in(nests, script).await;
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.first(), Some(&"inside"), "{said}");
    // It may mount another `/proc`, with its processes only; nothing else succeeded.
    assert!(
        lines[1..].iter().all(|line| line.parse::<u32>().is_ok_and(|count| count < 10)),
        "{said}"
    );
    let (said, _) = house.sh("unshare --user true 2>&1 && echo nested").await;
    assert!(!said.contains("nested"), "{said}");
}
