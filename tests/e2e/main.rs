//! What a user lives through, end to end.
