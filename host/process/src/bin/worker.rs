//! Stand-alone worker for the tests of this crate. In the product `a2a-hub` is the worker, and
//! compiles components.

use a2a_hub_process::work;
use rustix::process::getpriority_process;
use std::{
    fs,
    net::{TcpStream, UdpSocket},
    os::unix::net::{UnixDatagram, UnixStream},
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

/// Memory request beyond any worker's limit.
const EXCESSIVE_BYTES: usize = 1 << 40;

fn main() -> ExitCode {
    work(std::env::args_os().skip(2), |arguments, input| match arguments {
        [job] if job == "upper" => Ok(input.to_ascii_uppercase()),
        [job] if job == "refuse" => Err("it is not to my taste".to_owned()),
        [job] if job == "flood" => Ok(vec![b'x'; 2 << 20]),
        [job] if job == "eat" => Ok(vec![1; EXCESSIVE_BYTES]),
        [job] if job == "pry" => Ok(pried().into_bytes()),
        [job] if job == "crawl" => Ok(crawl().to_string().into_bytes()),
        [job] if job == "sleep" => loop {
            thread::park();
        },
        [job] if job == "spin" => loop {
            std::hint::black_box(input);
        },
        _ => panic!("there is no such work"),
    })
}

/// Works for a small part of four seconds, as work does on a busy machine; returns the nice value.
#[expect(clippy::disallowed_methods, reason = "it is a process without a runtime")]
fn crawl() -> i32 {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        let piece = Instant::now();
        while piece.elapsed() < Duration::from_millis(20) {
            std::hint::black_box(&piece);
        }
        thread::park_timeout(Duration::from_millis(200));
    }
    getpriority_process(None).unwrap_or(i32::MIN)
}

/// Operations that the worker can perform besides its work.
fn pried() -> String {
    #[expect(clippy::disallowed_methods, reason = "to be refused")]
    let started = Command::new("/bin/true").status().is_ok();
    let tried = [
        ("read a file", fs::read("/etc/passwd").is_ok()),
        ("list its descriptors", fs::read_dir("/proc/self/fd").is_ok()),
        ("write a file", fs::write("/tmp/a2a-hub-worker", "x").is_ok()),
        ("make a directory", fs::create_dir("/tmp/a2a-hub-worker").is_ok()),
        ("follow a link", fs::read_link("/proc/self/exe").is_ok()),
        ("start a program", started),
        (
            "call a port",
            TcpStream::connect("127.0.0.1:1").is_err_and(|why| why.raw_os_error() == Some(111)),
        ),
        ("send a packet", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("make a socket", UnixDatagram::unbound().is_ok()),
        ("make two sockets", UnixStream::pair().is_ok()),
        ("start a thread", thread::spawn(|| {}).join().is_ok()),
    ];
    let can: Vec<_> = tried.iter().filter(|(_, can)| *can).map(|(action, _)| *action).collect();
    can.join(", ")
}
