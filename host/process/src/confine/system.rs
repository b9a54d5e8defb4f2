//! System files that every program may read: programs, libraries and their configuration. An
//! allowlist, so that other files of an administrator (keys, passwords, tokens) are excluded.

/// System directories for reading and execution. Links stay links.
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

/// Files and directories of `/etc`. The target of a link appears in place of the link.
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

/// Devices without stored data.
pub(super) const DEVICES: &[&str] = &["full", "null", "random", "tty", "urandom", "zero"];

/// Links of `/dev` and their targets.
pub(super) const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Machine-wide parts of `/proc`. They belong to the superuser, whose programs can write them
/// without a capability.
pub(super) const MACHINES_PROC: &[&str] =
    &["acpi", "asound", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"];

/// Parts of `/proc` that the superuser may read and that reveal data of others.
pub(super) const SECRET_PROC: &[&str] = &["kcore", "keys", "kmsg", "timer_list"];
