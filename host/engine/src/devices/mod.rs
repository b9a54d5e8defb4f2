//! Devices of the operator: paired browsers, their pairing, and the check of their proofs.

mod dpop;
#[cfg(test)]
mod tests;

use a2a_hub_clock as clock;
use a2a_hub_config::{DevicesFile, DevicesFileError};
use a2a_hub_core::devices::{
    Device, MAX_DEVICES, name_of,
    pairing::{PairingState, Pairings, PresentedKey, RefusedPairing},
    proof::{InvalidProof, ProvenRequest, UsedProofs},
};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    operation::{
        DeviceInfo, DeviceList, DeviceReport, DeviceRequest, NamedDevice, OfferedPairing,
        PairingReport, PresentKey, PresentedReport,
    },
};
use dpop::DpopProof;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use std::{io, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use url::Url;

/// Random bytes of an access token.
const ACCESS_TOKEN: usize = 32;

/// Random bytes of the token of a pairing, which counts for a minute. The address with it fits into
/// a terminal of 80 columns, so it can be copied.
const PAIRING_TOKEN: usize = 16;

/// Age of the stored time of the latest request from which it is stored anew.
const LAST_USE_AGE: Duration = Duration::from_hours(1);

/// The devices of a hub, and the pairings that are going on.
pub struct Devices {
    state: Mutex<PairedDevices>,
    /// None for a hub in memory. Locked while it is written, so that the latest state wins.
    file: Mutex<Option<DevicesFile>>,
    /// URL of the page; none if the hub serves no HTTP.
    page: Option<String>,
    /// Start of the hub, in seconds since 1970.
    started: u64,
}

#[derive(Default)]
struct PairedDevices {
    devices: Vec<PairedDevice>,
    pairings: Pairings,
}

struct PairedDevice {
    device: Device,
    used: UsedProofs,
    removed: CancellationToken,
}

impl From<Device> for PairedDevice {
    fn from(device: Device) -> Self {
        Self { device, used: UsedProofs::default(), removed: CancellationToken::new() }
    }
}

/// HTTP request that a device sends.
#[derive(Clone, Copy)]
pub struct DeviceHttpRequest<'a> {
    /// Value of the `DPoP` header.
    pub proof: &'a str,
    /// HTTP method.
    pub method: &'a str,
    /// Path, without the query.
    pub path: &'a str,
    /// Tells whether the origin of an address is the hub, as the request names it.
    pub is_hub: &'a (dyn Fn(&Url) -> bool + Sync),
}

/// Device that proved a request.
pub struct ProvenDevice {
    /// Its id.
    pub id: String,
    /// Cancelled when the device is removed, which ends its streams.
    pub removed: CancellationToken,
    /// True if the time of this request is to be stored ([`Devices::store_last_use`]).
    pub is_new_use: bool,
}

/// Reason why a request is not that of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDevice {
    /// No device has this access token.
    #[error(
        "this browser is not paired with the hub, or was removed; run `a2a-hub web` to pair it"
    )]
    Unknown,
    /// The proof does not count.
    #[error(transparent)]
    Proof(#[from] InvalidProof),
}

impl Default for Devices {
    fn default() -> Self {
        Self::of(None, Vec::new(), None)
    }
}

impl Devices {
    /// Opens the devices in a file. `page` is the URL of the page, if it is served. Blocks on disk
    /// I/O.
    ///
    /// # Errors
    ///
    /// If the file is not usable.
    pub fn open(file: DevicesFile, page: Option<String>) -> Result<Self, DevicesFileError> {
        let devices = file.read()?;
        Ok(Self::of(Some(file), devices, page))
    }

    fn of(file: Option<DevicesFile>, devices: Vec<Device>, page: Option<String>) -> Self {
        let devices = devices.into_iter().map(PairedDevice::from).collect();
        let state = PairedDevices { devices, pairings: Pairings::default() };
        let (state, file) = (Mutex::new(state), Mutex::new(file));
        Self { state, file, page, started: clock::now_ms() / 1_000 }
    }

    /// Identifies the device that sends a request with this access token.
    ///
    /// # Errors
    ///
    /// If no device has the token, or the request is not proven by that device's key.
    pub fn identify(
        &self,
        access_token: &str,
        request: DeviceHttpRequest<'_>,
    ) -> Result<ProvenDevice, NoDevice> {
        let digested = digest(&SHA256, access_token.as_bytes());
        let token_digest = hex::encode(digested);
        // A digest needs no comparison in constant time: nobody can choose its first letters.
        let is_it = |one: &PairedDevice| one.device.token_digest == token_digest;
        if !self.state.lock().devices.iter().any(is_it) {
            return Err(NoDevice::Unknown);
        }
        let proof = self.check(request, Some(&dpop::base64(digested.as_ref())))?;
        let (now_ms, mut state) = (clock::now_ms(), self.state.lock());
        let device = state.devices.iter_mut().find(|one| is_it(one)).ok_or(NoDevice::Unknown)?;
        if device.device.thumbprint != proof.thumbprint {
            return Err(NoDevice::Unknown);
        }
        device.used.remember(&proof.claims, now_ms / 1_000)?;
        let is_new_use = clock::age(&device.device.last_used_at) > LAST_USE_AGE;
        if is_new_use {
            device.device.last_used_at = clock::now();
        }
        let (id, removed) = (device.device.id.clone(), device.removed.clone());
        Ok(ProvenDevice { id, removed, is_new_use })
    }

    /// Thumbprint of the key with which a browser proves that it sends this request, without an
    /// access token.
    ///
    /// # Errors
    ///
    /// If the proof does not count.
    pub fn presented_key(&self, request: DeviceHttpRequest<'_>) -> Result<String, InvalidProof> {
        Ok(self.check(request, None)?.thumbprint)
    }

    fn check(
        &self,
        request: DeviceHttpRequest<'_>,
        ath: Option<&str>,
    ) -> Result<DpopProof, InvalidProof> {
        let proof = DpopProof::parse(request.proof)?;
        let about = ProvenRequest {
            method: request.method,
            path: request.path,
            ath,
            now: clock::now_ms() / 1_000,
            started: self.started,
        };
        proof.claims.check(about, request.is_hub)?;
        Ok(proof)
    }

    /// Ends a pairing whose browser is a device already. Returns the answer to that browser.
    pub fn end_pairing_for(&self, token: &str, device: &str) -> PresentedReport {
        let now = clock::now_ms();
        let state = self.state.lock().pairings.end_for(&digest_of(token), device, now);
        presented_report(state)
    }

    /// Carries out a request.
    pub(crate) async fn perform(
        self: &Arc<Self>,
        request: DeviceRequest,
    ) -> Result<DeviceReport, A2aError> {
        Ok(match request {
            DeviceRequest::List => DeviceReport::List(self.list()),
            DeviceRequest::Remove { id } => DeviceReport::Removed(self.remove(&id).await?),
            DeviceRequest::Pair => DeviceReport::Offered(self.offer()?),
            DeviceRequest::Pairing { token } => DeviceReport::State(self.pairing(&token)),
            DeviceRequest::Confirm { token, code, accept: true } => {
                DeviceReport::State(self.accept(&token, &code).await?)
            }
            DeviceRequest::Confirm { token, code, accept: false } => {
                let (now, digest) = (clock::now_ms(), digest_of(&token));
                let refused = self.state.lock().pairings.decide(&digest, &code, None, now);
                refused.map_err(|why| A2aError::invalid("code", why.to_string()))?;
                DeviceReport::State(self.pairing(&token))
            }
            DeviceRequest::Present(key) => DeviceReport::Presented(self.present(*key)),
        })
    }

    fn list(&self) -> DeviceList {
        let info = |one: &PairedDevice| {
            let Device { id, name, paired_at, last_used_at, .. } = one.device.clone();
            DeviceInfo { id, name, paired_at, last_used_at }
        };
        DeviceList { devices: self.state.lock().devices.iter().rev().map(info).collect() }
    }

    async fn remove(self: &Arc<Self>, id: &str) -> Result<NamedDevice, A2aError> {
        let removed = self.take_out(id).ok_or_else(|| {
            let why = format!("no paired browser has the id `{id}`; `a2a-hub web list` lists them");
            A2aError::invalid("id", why)
        })?;
        tracing::info!(device = removed.id, "a paired browser was removed");
        self.save().await.map_err(|why| {
            let why = format!(
                "the browser `{id}` is removed until the hub restarts, and comes back then: {why}"
            );
            A2aError::new(ErrorKind::Internal, why)
        })?;
        Ok(NamedDevice { id: removed.id, name: removed.name })
    }

    fn take_out(&self, id: &str) -> Option<Device> {
        let mut state = self.state.lock();
        let at = state.devices.iter().position(|one| one.device.id == id)?;
        let PairedDevice { device, removed, .. } = state.devices.remove(at);
        removed.cancel();
        Some(device)
    }

    fn offer(&self) -> Result<OfferedPairing, A2aError> {
        let Some(page) = self.page.clone() else {
            let why = "this hub serves no page, because `http.enabled` is false or it was started with `--no-http`";
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why));
        };
        let token = fresh_token::<PAIRING_TOKEN>()?;
        let mut state = self.state.lock();
        if state.devices.len() >= MAX_DEVICES {
            let why = format!(
                "{MAX_DEVICES} browsers are paired, which is the limit; `a2a-hub web remove` removes one"
            );
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why));
        }
        let expires_at = state.pairings.offer(digest_of(&token), clock::now_ms());
        let expires_at = clock::at_ms(expires_at).unwrap_or_default();
        Ok(OfferedPairing { token, page, expires_at })
    }

    fn pairing(&self, token: &str) -> PairingReport {
        let state = self.state.lock().pairings.state(&digest_of(token), clock::now_ms());
        let of = PairingReport::of;
        match state {
            PairingState::Offered => of("offered"),
            PairingState::Presented(key) => {
                let code = Some(key.code());
                PairingReport { name: Some(key.name), code, ..of("presented") }
            }
            PairingState::Paired { key, .. } => {
                let code = Some(key.code());
                PairingReport { name: Some(key.name), code, ..of("paired") }
            }
            PairingState::PairedBefore(id) => {
                let devices = self.list().devices;
                let name = devices.into_iter().find(|one| one.id == id).map(|one| one.name);
                PairingReport { name, ..of("paired-before") }
            }
            PairingState::Refused(why) => {
                PairingReport { reason: Some(why.to_string()), ..of("refused") }
            }
        }
    }

    /// Pairs the browser whose key has this code. The device is stored before the browser gets its
    /// access token.
    async fn accept(self: &Arc<Self>, token: &str, code: &str) -> Result<PairingReport, A2aError> {
        let access_token = fresh_token::<ACCESS_TOKEN>()?;
        let (digest, now) = (digest_of(token), clock::now_ms());
        let refused = |why: RefusedPairing| A2aError::invalid("code", why.to_string());
        let id = {
            let mut state = self.state.lock();
            let key = state.pairings.presented_key(&digest, code, now).map_err(refused)?;
            let id = key.id();
            if state.devices.len() >= MAX_DEVICES
                || state.devices.iter().any(|one| one.device.id == id)
            {
                let why = "a browser with this code is paired already, or too many are";
                return Err(A2aError::invalid("code", why));
            }
            let PresentedKey { thumbprint, name } = key;
            let (paired_at, token_digest) = (clock::now(), digest_of(&access_token));
            let last_used_at = paired_at.clone();
            let device =
                Device { id: id.clone(), name, thumbprint, token_digest, paired_at, last_used_at };
            state.devices.push(PairedDevice::from(device));
            id
        };
        if let Err(why) = self.save().await {
            self.take_out(&id);
            return Err(A2aError::new(ErrorKind::Internal, why.to_string()));
        }
        let decided =
            self.state.lock().pairings.decide(&digest, code, Some(access_token), clock::now_ms());
        if let Err(why) = decided {
            // Another key presented the token meanwhile.
            self.take_out(&id);
            if let Err(why) = self.save().await {
                tracing::error!(%why, "a refused browser cannot be removed from the file");
            }
            return Err(refused(why));
        }
        tracing::info!(device = id, "a browser was paired");
        Ok(self.pairing(token))
    }

    fn present(&self, key: PresentKey) -> PresentedReport {
        let PresentKey { token, name, thumbprint } = key;
        let key = PresentedKey { thumbprint, name: name_of(&name) };
        let (digest, now) = (digest_of(&token), clock::now_ms());
        let state = self.state.lock().pairings.present(&digest, key, now);
        presented_report(state)
    }

    /// Stores the devices.
    async fn save(self: &Arc<Self>) -> io::Result<()> {
        let this = Arc::clone(self);
        run_blocking(move || this.write()).await.map_err(io::Error::other)?
    }

    /// Stores the time of the latest request of a device, at most once an hour for each.
    pub async fn store_last_use(self: &Arc<Self>) {
        if let Err(why) = self.save().await {
            tracing::warn!(%why, "the last use of a paired browser cannot be stored");
        }
    }

    fn write(&self) -> io::Result<()> {
        let file = self.file.lock();
        let Some(file) = &*file else { return Ok(()) };
        let devices = self.state.lock().devices.iter().map(|one| one.device.clone()).collect();
        file.write(devices)
    }
}

/// SHA-256 digest of a token, in hexadecimal digits.
fn digest_of(token: &str) -> String {
    hex::encode(digest(&SHA256, token.as_bytes()))
}

fn fresh_token<const BYTES: usize>() -> Result<String, A2aError> {
    let mut random = [0; BYTES];
    let filled = getrandom::fill(&mut random);
    filled.map_err(|why| A2aError::new(ErrorKind::Internal, why.to_string()))?;
    Ok(hex::encode(random))
}

/// Answer to a browser whose pairing is in this state.
fn presented_report(state: PairingState) -> PresentedReport {
    let of = PresentedReport::of;
    match state {
        PairingState::Presented(key) => PresentedReport { code: Some(key.code()), ..of("pending") },
        PairingState::Paired { key, access_token } => {
            let device = Some(NamedDevice { id: key.id(), name: key.name });
            PresentedReport { access_token: Some(access_token), device, ..of("paired") }
        }
        PairingState::PairedBefore(id) => {
            let device = Some(NamedDevice { id, name: String::new() });
            PresentedReport { device, ..of("paired") }
        }
        PairingState::Refused(why @ (RefusedPairing::Operator | RefusedPairing::TwoKeys)) => {
            PresentedReport { reason: Some(why.to_string()), ..of("refused") }
        }
        PairingState::Offered | PairingState::Refused(RefusedPairing::Over) => {
            PresentedReport { reason: Some(RefusedPairing::Over.to_string()), ..of("over") }
        }
    }
}
