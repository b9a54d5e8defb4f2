//! Pseudorandom numbers for tests that grow task trees.

/// Numbers that are the same in each run with the same seed (Marsaglia's xorshift).
pub struct Numbers(u64);

impl Numbers {
    /// Starts at a seed other than 0.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 to `end`, exclusive.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Returns one of these values, which may not be empty.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap_or_default();
        all[at]
    }
}
