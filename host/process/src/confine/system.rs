//! What of the system every program may read: programs, libraries, and the configuration that those read. An allowlist, so that
//! whatever else an administrator keeps there (keys, passwords, tokens) is not in it.

/// Directories of the system's own, for reading and running. What is a link in them stays one.
pub(super) const DIRECTORIES: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/var/lib/ca-certificates",
    "/sys/devices/system/cpu", // how many processors there are
];

/// Files and directories of `/etc`. Where one is a link, what it leads to stands in its place.
pub(super) const CONFIGURATION: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "bash_completion.d",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "gitconfig",
    "group",
    "host.conf",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "locale.gen",
    "localtime",
    "lsb-release",
    "magic",
    "mailcap",
    "mime.types",
    "networks",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "redhat-release",
    "resolv.conf",
    "services",
    "shells",
    "ssh/ssh_config",
    "ssh/ssh_config.d",
    "ssh/ssh_known_hosts",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "static", // of NixOS, where the others are links into it
    "terminfo",
    "timezone",
    "xdg",
    "xml",
];

/// Devices that hold nothing.
pub(super) const DEVICES: &[&str] = &["full", "null", "random", "tty", "urandom", "zero"];

/// Links of `/dev`, and where they lead.
pub(super) const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// What of `/proc` is the machine's and not a process's. It belongs to the superuser, whose programs need no capability to
/// write it.
pub(super) const MACHINES_PROC: &[&str] =
    &["acpi", "asound", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"];

/// What of `/proc` the superuser may read, and tells of others.
pub(super) const SECRET_PROC: &[&str] = &["kcore", "keys", "kmsg", "timer_list"];
