//! Whether the card of an agent elsewhere is used: it says where the agent is reached and how, so that who changes it
//! unseen gets the clients' words and the operator's token. Unless the operator pins one, the first card that is found counts
//! (trust on first use), and another one only once it is approved.

/// A card that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered<'a> {
    /// Its digest, in hex.
    pub digest: &'a str,
    /// Whether it is signed with one of the operator's keys; none if the operator names no keys.
    pub signed: Option<bool>,
}

/// Why a card may be used, by their digests in hex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known<'a> {
    /// The one that the configuration pins.
    pub pinned: Option<&'a str>,
    /// The one that the operator approves now.
    pub accepted: Option<&'a str>,
    /// The one that is in use.
    pub used: Option<&'a str>,
}

/// Whether a card is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is used from now on.
    Use,
    /// Nobody whose key the operator names has signed it.
    NotSigned,
    /// It is not the one that the configuration pins.
    NotPinned,
    /// It is not the one that the operator approves: it changed once more.
    NotAccepted,
    /// It is not the one in use, and nobody approves it.
    Changed,
}

impl Known<'_> {
    /// Whether the card is used that is `offered`. The configuration counts most; then what the operator approves by hand;
    /// a signature approves by itself, which is what it is for; and without all that, the first card is the right one.
    pub fn verdict(&self, offered: Offered<'_>) -> Verdict {
        let is = |digest: &str| digest.eq_ignore_ascii_case(offered.digest);
        match (offered.signed, self) {
            (Some(false), _) => Verdict::NotSigned,
            (_, Known { pinned: Some(pinned), .. }) if !is(pinned) => Verdict::NotPinned,
            (_, Known { accepted: Some(accepted), .. }) if !is(accepted) => Verdict::NotAccepted,
            (_, Known { pinned: Some(_), .. } | Known { accepted: Some(_), .. })
            | (Some(true), _)
            | (None, Known { used: None, .. }) => Verdict::Use,
            (None, Known { used: Some(used), .. }) => {
                if is(used) {
                    Verdict::Use
                } else {
                    Verdict::Changed
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// `new` is offered while `old` is in use.
    #[test]
    fn trust_table() {
        let known = |pinned, accepted, used| Known { pinned, accepted, used };
        let (old, new) = (Some("old"), Some("NEW"));
        let mut table = String::new();
        for (what, known) in [
            ("first seen", known(None, None, None)),
            ("the one in use", known(None, None, new)),
            ("another than is in use", known(None, None, old)),
            ("approved", known(None, new, old)),
            ("another than is approved", known(None, old, old)),
            ("pinned", known(new, None, old)),
            ("another than is pinned", known(old, None, new)),
            ("approved, and another than is pinned", known(old, new, old)),
        ] {
            let verdicts = [None, Some(true), Some(false)]
                .map(|signed| format!("{:?}", known.verdict(Offered { digest: "new", signed })));
            writeln!(table, "{what}: {}", verdicts.join(" | ")).unwrap();
        }
        insta::assert_snapshot!(table, @r"
        first seen: Use | Use | NotSigned
        the one in use: Use | Use | NotSigned
        another than is in use: Changed | Use | NotSigned
        approved: Use | Use | NotSigned
        another than is approved: NotAccepted | NotAccepted | NotSigned
        pinned: Use | Use | NotSigned
        another than is pinned: NotPinned | NotPinned | NotSigned
        approved, and another than is pinned: NotPinned | NotPinned | NotSigned
        ");
    }
}
