//! Validity of a certificate in time, and the moment from which its end is announced.

/// Longest time before the end of a certificate at which it counts as expiring soon, in seconds:
/// two weeks, because CAs that issue for 90 days renew 30 days before.
const SOON: u64 = 14 * 86_400;

/// Part of its lifetime after which a certificate of short life counts as expiring soon: CAs such
/// as step-ca renew after two thirds.
const SOON_PART: u64 = 5;

/// Period in which a certificate is valid, in seconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateValidity {
    /// First second.
    pub not_before: u64,
    /// Last second.
    pub not_after: u64,
}

/// Condition of a certificate at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidityState {
    /// It is not valid yet.
    Future,
    /// It is valid.
    Valid,
    /// It is valid, and should have been renewed.
    ExpiresSoon,
    /// It is not valid any more.
    Expired,
}

impl CertificateValidity {
    /// Condition at `now`, in seconds since 1970.
    pub fn state(self, now: u64) -> ValidityState {
        let lifetime = self.not_after.saturating_sub(self.not_before);
        let soon = SOON.min(lifetime / SOON_PART);
        if now < self.not_before {
            ValidityState::Future
        } else if now > self.not_after {
            ValidityState::Expired
        } else if self.not_after - now < soon {
            ValidityState::ExpiresSoon
        } else {
            ValidityState::Valid
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_certificates_are_announced_later() {
        const DAY: u64 = 86_400;
        let state = |days: u64, now: u64| {
            CertificateValidity { not_before: 100, not_after: 100 + days * DAY }.state(now)
        };
        for (days, now, expected) in [
            (90, 99, ValidityState::Future),
            (90, 100, ValidityState::Valid),
            (90, 100 + 76 * DAY, ValidityState::Valid),
            (90, 101 + 76 * DAY, ValidityState::ExpiresSoon),
            (90, 100 + 90 * DAY, ValidityState::ExpiresSoon),
            (90, 101 + 90 * DAY, ValidityState::Expired),
            (1, 100 + DAY * 4 / 5, ValidityState::Valid),
            (1, 101 + DAY * 4 / 5, ValidityState::ExpiresSoon),
            (0, 100, ValidityState::Valid),
        ] {
            assert_eq!(state(days, now), expected, "{days} {now}");
        }
        let reversed = CertificateValidity { not_before: 9, not_after: 1 };
        assert_eq!(reversed.state(5), ValidityState::Future);
    }
}
