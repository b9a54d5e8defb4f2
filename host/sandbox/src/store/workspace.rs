//! Files of the task's working directory for WASI: a preopen at `/workspace`. Writes are counted
//! here. Links that lead outside are refused by WASI when followed, and here when created.

#[cfg(target_os = "linux")]
use crate::store::openat2::{self, OpenOptions};
use a2a_hub_core::grant::workspace::WorkspaceAccess;
use a2a_hub_runtime::{
    Failure, Limits,
    port::workspace::{OpenWorkspace, WorkspacePort},
};
use bytes::Bytes;
use std::{
    io, mem,
    os::fd::AsRawFd as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::{
    FsPerms, WasiCtxBuilder,
    filesystem::WasiFilesystemCtxView,
    p2::{
        DynInputStream, DynOutputStream, FsError, FsResult, InputStream, OutputStream, Pollable,
        StreamError, StreamResult,
        bindings::filesystem::types::{
            Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
            DirectoryEntryStream, ErrorCode, Filesize, Host, HostDescriptor,
            HostDirectoryEntryStream, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
        },
    },
};

/// Path of the directory for guests.
const GUEST_PATH: &str = "/workspace";

/// Opens the directory for a guest.
pub(crate) fn preopen(wasi: &mut WasiCtxBuilder, open: &OpenWorkspace) -> Result<(), Failure> {
    let perms = match open.access {
        WorkspaceAccess::Read => FsPerms::ReadOnly,
        WorkspaceAccess::ReadWrite => FsPerms::ReadWrite,
    };
    // By the validated handle, because its path may have changed since.
    let judged = format!("/proc/self/fd/{}", open.directory.as_raw_fd());
    let opened = wasi.preopened_dir(judged, GUEST_PATH, perms);
    opened.map(drop).map_err(|why| Failure::Unavailable(format!("open the workspace: {why:#}")))
}

/// Current file permission of one instance, and its remaining quota. Clones share state.
#[derive(Clone)]
pub(crate) struct WriteQuota(Arc<WorkspaceBudget>);

struct WorkspaceBudget {
    /// Source of revocations; none without a workspace.
    port: Option<Arc<dyn WorkspacePort>>,
    bytes: AtomicU64,
    files: AtomicU64,
}

impl WriteQuota {
    pub(crate) fn new(limits: &Limits, port: Option<Arc<dyn WorkspacePort>>) -> Self {
        let Limits { workspace_bytes, workspace_files, .. } = *limits;
        let (bytes, files) = (workspace_bytes.into(), workspace_files.into());
        Self(Arc::new(WorkspaceBudget { port, bytes, files }))
    }

    /// Refuses access that is no longer granted.
    fn must(&self, access: WorkspaceAccess) -> Result<(), ErrorCode> {
        let now = self.0.port.as_ref().and_then(|port| port.access());
        if now >= Some(access) { Ok(()) } else { Err(ErrorCode::Access) }
    }

    /// Reserves bytes to be written.
    fn take_bytes(&self, bytes: u64) -> Result<(), ErrorCode> {
        self.must(WorkspaceAccess::ReadWrite)?;
        consume(&self.0.bytes, bytes)
    }

    /// Reserves a file or directory to be created.
    fn take_file(&self) -> Result<(), ErrorCode> {
        self.must(WorkspaceAccess::ReadWrite)?;
        consume(&self.0.files, 1)
    }
}

fn consume(remaining: &AtomicU64, amount: u64) -> Result<(), ErrorCode> {
    let took = remaining.fetch_update(Relaxed, Relaxed, |remaining| remaining.checked_sub(amount));
    took.map(drop).map_err(|_| ErrorCode::InsufficientSpace)
}

/// File functions of WASI, with counters.
pub(crate) struct CountedFiles;

impl HasData for CountedFiles {
    type Data<'a> = CountedView<'a>;
}

pub(crate) struct CountedView<'a> {
    pub(crate) files: WasiFilesystemCtxView<'a>,
    pub(crate) quota: WriteQuota,
}

/// Stream into a file, with bytes charged before they are written.
struct CountedStream {
    inner: DynOutputStream,
    quota: WriteQuota,
}

impl CountedStream {
    fn charge(&self, bytes: usize) -> StreamResult<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.quota.take_bytes(bytes).map_err(|why| {
            let denied = why == ErrorCode::Access;
            let errno = if denied { rustix::io::Errno::ACCESS } else { rustix::io::Errno::NOSPC };
            StreamError::LastOperationFailed(io::Error::from(errno).into())
        })
    }
}

#[async_trait::async_trait]
impl OutputStream for CountedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.charge(bytes.len())?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.charge(bytes.len())?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    fn write_zeroes(&mut self, len: usize) -> StreamResult<()> {
        self.charge(len)?;
        self.inner.write_zeroes(len)
    }

    async fn write_ready(&mut self) -> StreamResult<usize> {
        self.inner.write_ready().await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait::async_trait]
impl Pollable for CountedStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

/// Stream out of a file, which fails on revocation.
struct GrantedStream {
    inner: DynInputStream,
    quota: WriteQuota,
}

impl GrantedStream {
    fn must(&self) -> StreamResult<()> {
        self.quota.must(WorkspaceAccess::Read).map_err(|_| {
            let denied = io::Error::from(rustix::io::Errno::ACCESS);
            StreamError::LastOperationFailed(denied.into())
        })
    }
}

#[async_trait::async_trait]
impl InputStream for GrantedStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.must()?;
        self.inner.read(size)
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.must()?;
        self.inner.blocking_read(size).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait::async_trait]
impl Pollable for GrantedStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait::async_trait]
impl InputStream for NoStream {
    fn read(&mut self, _: usize) -> StreamResult<Bytes> {
        Err(StreamError::Closed)
    }
}

/// Placeholder of a stream.
struct NoStream;

#[async_trait::async_trait]
impl OutputStream for NoStream {
    fn write(&mut self, _: Bytes) -> StreamResult<()> {
        Err(StreamError::Closed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Err(StreamError::Closed)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Err(StreamError::Closed)
    }
}

#[async_trait::async_trait]
impl Pollable for NoStream {
    async fn ready(&mut self) {}
}

impl CountedView<'_> {
    fn counted(
        &mut self,
        stream: Resource<DynOutputStream>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let quota = self.quota.clone();
        let slot = self.files.table.get_mut(&stream)?;
        let inner = mem::replace(slot, Box::new(NoStream));
        *slot = Box::new(CountedStream { inner, quota });
        Ok(stream)
    }

    /// Directory of a handle.
    #[cfg(target_os = "linux")]
    fn directory(&self, fd: &Resource<Descriptor>) -> FsResult<Dir> {
        match self.files.table.get(fd)? {
            Descriptor::Dir(dir) => Ok(dir.clone()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// Refuses special files, where they cannot be opened without blocking.
    async fn require_plain_file(
        &mut self,
        fd: &Resource<Descriptor>,
        flags: PathFlags,
        path: &str,
    ) -> FsResult<()> {
        let there = self.files.stat_at(Resource::new_borrow(fd.rep()), flags, path.to_owned());
        if there.await.is_ok_and(|there| is_special(there.type_)) {
            return Err(ErrorCode::NotPermitted.into());
        }
        Ok(())
    }
}

/// True if the file is neither a regular file, a directory nor a link.
fn is_special(kind: DescriptorType) -> bool {
    !matches!(
        kind,
        DescriptorType::RegularFile | DescriptorType::Directory | DescriptorType::SymbolicLink
    )
}

/// WASI functions that are forwarded after the permission check.
macro_rules! pass {
    ($need:ident: $(fn $name:ident($($arg:ident: $type:ty),*) -> $told:ty;)*) => {$(
        async fn $name(&mut self, fd: Resource<Descriptor>, $($arg: $type),*) -> FsResult<$told> {
            self.quota.must(WorkspaceAccess::$need)?;
            self.files.$name(fd, $($arg),*).await
        }
    )*};
}

impl HostDescriptor for CountedView<'_> {
    pass! { Read:
        fn advise(offset: Filesize, len: Filesize, advice: Advice) -> ();
        fn sync_data() -> ();
        fn read(len: Filesize, offset: Filesize) -> (Vec<u8>, bool);
        fn read_directory() -> Resource<DirectoryEntryStream>;
        fn sync() -> ();
        fn stat() -> DescriptorStat;
        fn stat_at(flags: PathFlags, path: String) -> DescriptorStat;
        fn readlink_at(path: String) -> String;
        fn metadata_hash() -> MetadataHashValue;
        fn metadata_hash_at(flags: PathFlags, path: String) -> MetadataHashValue;
    }

    pass! { ReadWrite:
        fn set_times(accessed: NewTimestamp, modified: NewTimestamp) -> ();
        fn remove_directory_at(path: String) -> ();
        fn rename_at(old_path: String, new_fd: Resource<Descriptor>, new_path: String) -> ();
        fn unlink_file_at(path: String) -> ();
    }

    /// Not checked: every language's runtime calls it first and gives up on failure; it reveals no
    /// content.
    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.files.get_flags(fd).await
    }

    /// Not checked, like the flags.
    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.files.get_type(fd).await
    }

    async fn is_same_object(
        &mut self,
        fd: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.files.is_same_object(fd, other).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        // Includes holes, which take no disk space yet.
        let before = self.files.stat(Resource::new_borrow(fd.rep())).await?.size;
        self.quota.take_bytes(size.saturating_sub(before))?;
        self.files.set_size(fd, size).await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        self.quota.take_bytes(u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
        self.files.write(fd, bytes, offset).await
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.quota.take_file()?;
        self.files.create_directory_at(fd, path).await
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.quota.take_file()?;
        self.files.link_at(fd, flags, old_path, new_fd, new_path).await
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        self.quota.must(WorkspaceAccess::Read)?;
        if open_flags.contains(OpenFlags::CREATE) {
            self.quota.take_file()?;
        }
        // Opening a FIFO blocks until its other end opens, on a thread of the hub that cannot be
        // stopped.
        #[cfg(target_os = "linux")]
        {
            let options = OpenOptions::from_wasi(path_flags, open_flags, flags)?;
            let dir = self.directory(&fd)?;
            if let Some(opened) = openat2::open(&dir, path.clone(), options).await? {
                return Ok(self.files.table.push(opened)?);
            }
        }
        self.require_plain_file(&fd, path_flags, &path).await?;
        self.files.open_at(fd, path_flags, path, open_flags, flags).await
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.quota.must(WorkspaceAccess::ReadWrite)?;
        // Setting times through a link opens its target.
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            #[cfg(target_os = "linux")]
            {
                let dir = self.directory(&fd)?;
                if openat2::set_times(&dir, path.clone(), accessed, modified).await? {
                    return Ok(());
                }
            }
            self.require_plain_file(&fd, flags, &path).await?;
        }
        self.files.set_times_at(fd, flags, path, accessed, modified).await
    }

    /// Refused: the guest cannot follow a link that leads outside, but other programs would, so
    /// guests create none.
    async fn symlink_at(&mut self, _: Resource<Descriptor>, _: String, _: String) -> FsResult<()> {
        Err(ErrorCode::NotPermitted.into())
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.quota.must(WorkspaceAccess::Read)?;
        let stream = self.files.read_via_stream(fd, offset)?;
        let quota = self.quota.clone();
        let slot = self.files.table.get_mut(&stream)?;
        let inner = mem::replace(slot, Box::new(NoStream));
        *slot = Box::new(GrantedStream { inner, quota });
        Ok(stream)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.files.write_via_stream(fd, offset)?;
        self.counted(stream)
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.files.append_via_stream(fd)?;
        self.counted(stream)
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.files, fd)
    }
}

impl HostDirectoryEntryStream for CountedView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.files.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.files, stream)
    }
}

impl Host for CountedView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.files.convert_error_code(error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.files.filesystem_error_code(error)
    }
}
